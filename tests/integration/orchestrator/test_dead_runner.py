"""An orchestrator that runs no debates any more does not go on as if it did."""

import asyncio
from collections.abc import AsyncIterable
from pathlib import Path

import pytest

from parley.orchestrator.engine.runner import Runner
from parley.runtime.channel import channel
from parley.runtime.errors import DRAINING, ParleyError, PartFailedError
from parley.runtime.server import RunningServer
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from tests.support.orchestration import failure_of, orchestrating
from tests.support.scripted_gateway import ScriptedGateway


async def test_an_orchestrator_whose_runner_died_drains_and_says_why_in_a_line(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.hold("*")
    dies = asyncio.Event()
    run = Runner.run

    async def mortal(runner: Runner) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(run(runner))
            await dies.wait()
            raise KeyError("deb-7")

    monkeypatch.setattr(Runner, "run", mortal)
    watching: list[asyncio.Task[ParleyError]] = []

    async def serve_until_stopped() -> None:
        async with orchestrating(tmp_path, gateway_server) as served:
            debate = await served.create()
            watching.append(asyncio.create_task(_watch(served.server.address, debate)))
            await gateway.wait_for("*")
            dies.set()
            await asyncio.Event().wait()

    with pytest.raises(PartFailedError, match=r"^running debates failed: KeyError: 'deb-7'$"):
        async with asyncio.timeout(30):
            await serve_until_stopped()
    assert (await watching[0]).reason == DRAINING


async def _watch(address: str, debate: str) -> ParleyError:
    async with channel(address) as connection:
        stub = orchestrator_pb2_grpc.OrchestratorServiceStub(connection)
        stream = stub.WatchDebate(orchestrator_pb2.WatchDebateRequest(debate_id=debate), timeout=10)
        return await failure_of(_read(stream))


async def _read(stream: AsyncIterable[object]) -> None:
    async for _ in stream:
        pass
