"""A Prometheus fetches metrics from a process that is asked to serve them, and finds nothing else there."""

import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPException
from threading import Event

import pytest

from parley.runtime.scraped_metrics import serve_metrics
from tests.support.ports import free_ports
from tests.support.trace_collector import run_http_collector

PROGRAM = """
import sys
from parley.runtime.errors import ConfigurationError
from parley.runtime.telemetry import configure_telemetry, meter
try:
    stop = configure_telemetry("orchestrator")
except ConfigurationError as error:
    sys.exit(str(error))
meter("test").create_counter("parley.tenant.tokens", "{token}").add(7, {"parley.tenant": "research"})
meter("test").create_histogram("parley.debate.duration", "s").record(2, {"parley.format": "panel"})
meter("test").create_up_down_counter("parley.debates.running", "{debate}").add(1)
print("started", flush=True)
sys.stdin.read()
stop()
print("client" if "prometheus_client" in sys.modules else "no client")
"""
HOST = "127.0.0.1"
OWN = 'service_instance_id="one",service_name="orchestrator",service_version="[^"]+"'


def start(**variables: str) -> "subprocess.Popen[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=kept | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    try:
        out, err = process.communicate("", timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


@contextmanager
def run_with_metrics(exporter: str = "prometheus", **variables: str) -> Iterator[int]:
    """Run the program; give the port at which it serves metrics."""
    port = next(free_ports())
    process = start(
        OTEL_METRICS_EXPORTER=exporter,
        OTEL_EXPORTER_PROMETHEUS_HOST=HOST,
        OTEL_EXPORTER_PROMETHEUS_PORT=str(port),
        OTEL_RESOURCE_ATTRIBUTES="service.instance.id=one",
        **variables,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "started\n", end(process)
        yield port
    finally:
        assert end(process) == (0, "client\n", "")


def fetch(port: int, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://{HOST}:{port}{path}", timeout=30) as response:
        return str(response.read().decode())


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with run_with_metrics() as found:
        yield found


def test_metrics_have_the_collectors_names_the_resource_as_labels_and_as_target_info(port: int) -> None:
    text = fetch(port)
    for line in (
        rf'parley_tenant_tokens_total{{parley_tenant="research",{OWN}}} 7\.0',
        rf'parley_debate_duration_seconds_bucket{{le="5\.0",parley_format="panel",{OWN}}} 1\.0',
        rf'parley_debate_duration_seconds_sum{{parley_format="panel",{OWN}}} 2\.0',
        rf"parley_debates_running{{{OWN}}} 1\.0",
        r'target_info{[^}]*service_instance_id="one"[^}]*telemetry_sdk_language="python"[^}]*} 1\.0',
    ):
        assert re.search(f"^{line}$", text, re.MULTILINE), f"{line}\n{text}"


def test_nothing_else_is_served_there(port: int) -> None:
    for path in ("/", "/metrics/", "/metricsx", "/debug", "/favicon.ico"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            fetch(port, path)
        assert refused.value.code == 404, path


def test_whoever_asks_at_the_same_time_gets_everything_though_another_asks_nothing(port: int) -> None:
    with closing(socket.create_connection((HOST, port))), ThreadPoolExecutor(8) as threads:
        texts = list(threads.map(fetch, [port] * 24))
    assert all("parley_tenant_tokens_total" in each for each in texts)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Serve the metrics of no provider from this process; give the port."""
    port = next(free_ports())
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_HOST", HOST)
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_PORT", str(port))
    monkeypatch.setattr("parley.runtime.scraped_metrics._Handler.timeout", 300)
    _, stop = serve_metrics()
    try:
        yield port
    finally:
        stop()


def test_metrics_are_collected_for_one_at_a_time(here: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader hands what it collected for one to whoever asks first."""
    one, another = Event(), Event()

    def encode(_: object) -> bytes:
        if not one.is_set():
            one.set()
            another.wait(0.5)  # in vain, as the other waits for this one
            return b"met" if another.is_set() else b"alone"
        another.set()
        return b"alone"

    monkeypatch.setattr("parley.runtime.scraped_metrics.choose_encoder", lambda _: (encode, "text/plain"))
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(fetch, [here, here])) == ["alone", "alone"]


def test_a_crowd_of_connections_is_bounded_and_others_are_answered_when_it_is_gone(here: int) -> None:
    crowd = [socket.create_connection((HOST, here)) for _ in range(16)]
    with pytest.raises((OSError, HTTPException)):
        fetch(here)
    for each in crowd:
        each.close()
    while True:
        try:
            fetch(here)
            break
        except (OSError, HTTPException):
            continue  # a connection that was closed may still count


def test_metrics_go_to_a_collector_too_where_both_are_named() -> None:
    with run_http_collector() as collector:
        with run_with_metrics(
            "otlp,prometheus",
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint,
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        ) as port:
            assert "parley_tenant_tokens_total" in fetch(port)
        assert "parley.tenant.tokens" in collector.metrics


def test_nothing_is_served_unless_that_is_asked_for() -> None:
    code, out, err = end(start())
    assert (code, out, err) == (0, "started\nno client\n", "")


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"OTEL_EXPORTER_PROMETHEUS_PORT": "http"}, "OTEL_EXPORTER_PROMETHEUS_PORT: 'http' is not a port"),
        ({"OTEL_EXPORTER_PROMETHEUS_PORT": "65536"}, "OTEL_EXPORTER_PROMETHEUS_PORT: '65536' is not a port"),
        ({"OTEL_METRICS_EXPORTER": "prometheus,console"}, "OTEL_METRICS_EXPORTER: 'console' is not one of"),
        ({"OTEL_METRICS_EXPORTER": "none,prometheus"}, "OTEL_METRICS_EXPORTER: names none and another"),
    ],
)
def test_variables_that_cannot_be_followed_are_named_in_one_line(
    variables: dict[str, str], told: str
) -> None:
    code, _, err = end(start(**{"OTEL_METRICS_EXPORTER": "prometheus"} | variables))
    assert code == 1
    assert err.startswith(told)
    assert len(err.splitlines()) == 1


def test_a_port_that_another_process_has_is_named(port: int) -> None:
    code, _, err = end(
        start(
            OTEL_METRICS_EXPORTER="prometheus",
            OTEL_EXPORTER_PROMETHEUS_HOST=HOST,
            OTEL_EXPORTER_PROMETHEUS_PORT=str(port),
        )
    )
    assert code == 1
    assert err.startswith(f"OTEL_EXPORTER_PROMETHEUS_PORT: metrics cannot be served at {HOST} port {port}: ")
    assert err.endswith("; choose another port, or another host by OTEL_EXPORTER_PROMETHEUS_HOST\n")
