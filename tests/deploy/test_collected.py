"""A short run of all services, seen through a real collector, a real Prometheus and at their own ports for one."""

import asyncio
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from parley.client import ParleyClient
from parley.client.trial import run_trial
from tests.deploy.collected import Collected, Rotel, exposition, rotel, values
from tests.deploy.test_observation import RULES, alerts, names_in, queries
from tests.e2e.harness import EDGE, SERVICES, System, model_server, system
from tests.support.ports import free_ports
from tests.support.trace_collector import run_http_collector

pytestmark = pytest.mark.timeout(240)  # six processes start here, on a machine that may be busy

_ALL: Final = (*SERVICES, EDGE)
_BY_HTTP: Final = {"gateway", "ratings"}
"""The others send by gRPC."""
_MEASURED: Final = ("orchestrator", "gateway", EDGE)
_SHOWN: Final = {
    "Running/A",
    "Ended, by outcome/A",
    "Running, by replica/A",
    "Duration of debates/A",
    "Requests to models/A",
    "Waiting for a slot/A",
    "Appends to logs/A",
    "Watchers/A",
    "Tokens/A",
    "Tokens of tenants in a day/A",
    "Debates of tenants in a day/A",
    "Tokens of routes/A",
    "Claims/A",
    "Requests/A",
    "Open streams/A",
}
"""Panels that have something to show after one debate."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came through the collector, and what each service itself had at its port for a Prometheus."""

    collected: Collected
    scraped: dict[str, str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("collected")
    with run_http_collector() as behind:
        try:
            with rotel(behind, folder) as collector:
                scraped = _hold_debate(folder, collector)
        except LookupError as error:
            pytest.skip(str(error))
        return Run(Collected.of(behind.exports), scraped)


@pytest.fixture(scope="module")
def collected(run: Run) -> Collected:
    return run.collected


def _hold_debate(folder: Path, collector: Rotel) -> dict[str, str]:
    ports = dict(zip(_ALL, free_ports(), strict=False))
    with (
        model_server() as models,
        system(folder, models, _VARIABLES | {"OPENAI_API_KEY": "test"}) as services,
    ):
        for name in _ALL:
            _start(services, name, models, collector, ports[name])
        services.wait(*SERVICES)
        services.wait_for_edge()
        target = services.addresses["orchestrator"]
        asyncio.run(run_trial(target, tenant="default", route="openai/test-model", seconds=60))
        debate = asyncio.run(_wait_until_closed(target))
        _ask_edge(services.addresses[EDGE], debate)
        return {name: _scrape(port) for name, port in ports.items()}


def _ask_edge(address: str, debate: str) -> None:
    """Ask for what is a call, and for what is a stream."""
    for path in ("v1/models", f"v1/debates/{debate}/events"):
        with urlopen(f"http://{address}/{path}", timeout=60) as response:
            assert response.read()


def _scrape(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
        return str(response.read().decode())


_VARIABLES: Final = {
    "OTEL_LOGS_EXPORTER": "otlp",
    "OTEL_METRICS_EXPORTER": "otlp,prometheus",
    "OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1",
    "OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=pod-1",
    "OTEL_BSP_SCHEDULE_DELAY": "100",
    "OTEL_METRIC_EXPORT_INTERVAL": "500",
    "PARLEY_EMBEDDING_FINE": "endpoint",
    "PARLEY_EMBEDDING_FAST": "endpoint",
    "PARLEY_LOCAL_MODEL": "off",
}


def _start(services: System, name: str, models: str, collector: Rotel, metrics_port: int) -> None:
    by_http = name in _BY_HTTP
    protocol = {
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf" if by_http else "grpc",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.http if by_http else collector.grpc,
        "PARLEY_EMBEDDING_BASE_URL": models,
        "OTEL_EXPORTER_PROMETHEUS_PORT": str(metrics_port),
    }
    services.start(name, variables=protocol)


async def _wait_until_closed(target: str) -> str:
    """Wait until what follows from the answer is done: the log of the one debate ends with that. Return its id."""
    async with asyncio.timeout(30), ParleyClient(target) as client:
        (debate,) = [each.id async for each in client.list()]
        async for _ in client.watch(debate):
            pass
    return debate


@pytest.mark.parametrize("service", _ALL)
def test_traces_metrics_and_log_lines_of_a_service_come_through_a_collector(
    collected: Collected, service: str
) -> None:
    name = f"parley-{service}"
    assert collected.resources[name]["service.version"] == version("parley")
    assert collected.spans[name]
    assert collected.lines[name]
    if service in _MEASURED:  # the others measure nothing that a debate moves
        assert collected.metrics[name]


def test_a_request_to_a_model_says_where_it_went_and_what_came_back(collected: Collected) -> None:
    asked = [each for each in collected.spans["parley-gateway"] if each.name.startswith("chat ")]
    assert asked
    for span in asked:
        said = values(span.attributes)
        assert said["server.address"] == "127.0.0.1"
        assert said["server.port"]
        assert said["gen_ai.response.id"]
        assert said["gen_ai.response.finish_reasons"]
        assert said["gen_ai.usage.output_tokens"]


def test_a_debate_is_one_trace_through_the_collector(collected: Collected) -> None:
    (debate,) = [
        each for each in collected.spans["parley-orchestrator"] if each.name.startswith("invoke_workflow")
    ]
    for service in ("gateway", "convergence", "ratings", "memory"):
        assert any(each.trace_id == debate.trace_id for each in collected.spans[f"parley-{service}"]), service


def _series(text: str) -> set[tuple[str, frozenset[tuple[str, str]]]]:
    """Return the series of a text that a Prometheus reads: name and labels, less the bounds of buckets and what names the SDK."""
    return {
        (
            sample.name,
            frozenset(
                (name, value)
                for name, value in sample.labels.items()
                if name != "le" and not name.startswith("telemetry_")
            ),
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name != "target_info"
    }


def test_a_service_serves_the_series_that_the_collector_makes_of_its_metrics(run: Run) -> None:
    made = _series(exposition(run.collected))
    for service in _MEASURED:
        served = _series(run.scraped[service])
        assert served
        assert served - made == set(), service


def test_the_ports_of_services_have_the_metrics_that_the_dashboard_shows_of_a_debate(run: Run) -> None:
    served = {name for text in run.scraped.values() for name, _ in _series(text)}
    missing = {where: names_in(queries()[where]) - served for where in sorted(_SHOWN)}
    assert {where: names for where, names in missing.items() if names} == {}
    for service in _MEASURED:  # the others count nothing in a debate that goes well
        (about,) = re.findall(r"^target_info\{.*$", run.scraped[service], re.MULTILINE)
        assert f'service_name="parley-{service}"' in about


@pytest.fixture(scope="module")
def prometheus(collected: Collected, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not here: apt-get install prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    port = next(free_ports())
    with _serve_metrics(exposition(collected)) as target:
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "collector", "static_configs": [{"targets": [target]}]}],
        }
        (folder / "prometheus.yml").write_text(json.dumps(configuration))
        command = [
            program,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                url = f"http://127.0.0.1:{port}/api/v1"
                _wait_for_rates(url, folder / "log")
                yield url
            finally:
                process.terminate()
                process.wait(20)


@contextmanager
def _serve_metrics(text: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _query(url: str, query: str) -> list[Any]:
    with urlopen(f"{url}/query?{urlencode({'query': query})}", timeout=10) as response:
        answer = json.load(response)
    assert answer["status"] == "success", answer
    found: list[Any] = answer["data"]["result"]
    return found


def _wait_for_rates(url: str, log: Path) -> None:
    """Wait until a counter was scraped twice, and all rules were evaluated."""
    ends = time.monotonic() + 60
    while True:
        try:
            if _query(url, "rate(parley_debate_claims_total[1m])") and all(
                each["lastEvaluation"] > "1" for each in _rules(url)
            ):
                return
        except URLError:
            pass  # it does not listen yet
        assert time.monotonic() < ends, log.read_text()[-2000:]
        time.sleep(0.2)


def _rules(url: str) -> list[dict[str, Any]]:
    with urlopen(f"{url}/rules", timeout=10) as response:
        return [rule for group in json.load(response)["data"]["groups"] for rule in group["rules"]]


def test_prometheus_answers_every_query_of_the_dashboard_and_has_data_for_what_a_debate_does(
    prometheus: str,
) -> None:
    answers = {
        where: _query(prometheus, query.replace("$__rate_interval", "1m"))
        for where, query in queries().items()
    }
    assert [where for where in sorted(_SHOWN) if not answers[where]] == []


def test_prometheus_evaluates_every_alert_without_an_error_and_none_fires_after_a_debate_that_went_well(
    prometheus: str,
) -> None:
    rules = _rules(prometheus)
    assert {each["name"] for each in rules} == {each["alert"] for each in alerts()}
    assert [(each["name"], each.get("lastError")) for each in rules if each["health"] != "ok"] == []
    assert [each["name"] for each in rules if each["alerts"]] == []
