"""What an orchestrator measures of a debate, from its creation to its end."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import asyncio, json, sys
from contextlib import suppress
from pathlib import Path
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))

from parley.client import ParleyClient, ParleyError
from parley.client.trial import run_trial
from parley.convergence.__main__ import build as convergence
from parley.convergence.settings import ConvergenceSettings
from parley.gateway.__main__ import build as gateway
from parley.gateway.settings import GatewaySettings
from parley.memory.__main__ import build as memory
from parley.memory.settings import MemorySettings
from parley.orchestrator.__main__ import build as orchestrator
from parley.orchestrator.settings import OrchestratorSettings
from parley.runtime.server import ServerSettings, start_server


def told():
    return {
        metric.name: [
            {"labels": dict(point.attributes), "value": getattr(point, "value", getattr(point, "count", None))}
            for point in metric.data.data_points
        ]
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


async def main(folder):
    store = f"sqlite:///{folder}"
    quick = ServerSettings(grace_seconds=1.0)
    async with (
        gateway(GatewaySettings(store=store, echo=True, local_model="off", local_servers="off")) as answers,
        start_server([answers], quick) as there,
        orchestrator(OrchestratorSettings(store=store, gateway=there.address, follow_up_seconds=1.0,
            convergence="127.0.0.1:1", ratings="127.0.0.1:1", memory="127.0.0.1:1")) as debates,
        start_server([debates], quick) as here,
    ):
        print(json.dumps(told()))
        await run_trial(here.address, tenant="research", route="echo/echo", seconds=60)
        with suppress(ParleyError):
            async with ParleyClient(here.address) as parley:
                await parley.get("deb-20260101-000000-aaaaaaaa")
    print(json.dumps(told()))


asyncio.run(main(sys.argv[1]))
"""


def test_a_debate_is_measured_with_its_format_its_outcome_and_its_tenant(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert ended.returncode == 0, ended.stderr[-2000:]
    lines = ended.stdout.splitlines()
    idle, found = _parse_line(lines[0]), _parse_line(lines[-1])
    for name in ("parley.debates.running", "parley.watchers"):
        assert idle[name] == [{"labels": {}, "value": 0}], "a replica that does nothing says so"
    (duration,) = found["parley.debate.duration"]
    assert duration["labels"]["parley.format"].startswith("panel@")
    assert (duration["labels"]["parley.outcome"], duration["value"]) == ("completed", 1)
    assert found["parley.debates.running"] == [{"labels": {}, "value": 0}]
    assert found["parley.watchers"] == [{"labels": {}, "value": 0}]
    assert found["parley.debate.claims"] == [{"labels": {"parley.outcome": "taken"}, "value": 1}]
    assert found["parley.tenant.debates"] == [{"labels": {"parley.tenant": "research"}, "value": 1}]
    assert found["parley.tenant.tokens"][0]["value"] > 0
    assert found["parley.log.append.duration"][0]["value"] > 1
    refused = {"parley.reason": "DEBATE_NOT_FOUND", "rpc.method": "parley.v1.OrchestratorService/GetDebate"}
    assert found["parley.refusals"] == [{"labels": refused, "value": 1}]


def _parse_line(line: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(line)
    return found
