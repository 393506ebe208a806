"""Readers that do not keep up, over real gRPC: cut in bounded time, told where to go on, and losing nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.orchestrator.watch.watcher import slow_reader_error
from parley.runtime.byte_budget import ByteBudget, Share
from parley.runtime.errors import ParleyError
from parley.runtime.server import RunningServer
from parley.runtime.watching import WatchStream, watch_events
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from parley.v1.event_pb2 import Event
from tests.support.catching import catch_error
from tests.support.orchestration import Orchestrator, kind_of, orchestrating
from tests.support.scripted_gateway import ScriptedGateway

SECONDS = 0.3
WITHIN = 20.0


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when a reader is cut."""
    event = asyncio.Event()

    def note_error(last: int) -> ParleyError:
        event.set()
        return slow_reader_error(last)

    monkeypatch.setattr("parley.orchestrator.api.servicer.slow_reader_error", note_error)
    return event


@asynccontextmanager
async def run_long_debate(
    gateway: ScriptedGateway, server: RunningServer, folder: Path
) -> AsyncIterator[tuple[Orchestrator, orchestrator_pb2_grpc.OrchestratorServiceStub, str]]:
    """A debate of long answers, closed, and a client whose connection holds little that is not read."""
    gateway.text = lambda step, agent: f"{agent} on {step}: {'words ' * 20_000}\nPosition: yes"
    options = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_536)]
    async with (
        orchestrating(folder, server, reader_seconds=SECONDS) as served,
        grpc.aio.insecure_channel(served.server.address, options=options) as narrow,
    ):
        debate = await served.create(rounds=1)
        await served.watch(debate)
        yield served, orchestrator_pb2_grpc.OrchestratorServiceStub(narrow), debate


async def test_a_reader_that_takes_nothing_is_cut_and_told_where_to_go_on_and_then_misses_nothing(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path, cut: asyncio.Event
) -> None:
    async with run_long_debate(gateway, gateway_server, tmp_path) as (served, narrow, debate):
        whole = [message.event.sequence for message in await served.watch(debate)]
        stream = aiter(narrow.WatchDebate(orchestrator_pb2.WatchDebateRequest(debate_id=debate)))
        seen = [(await anext(stream)).event.sequence]
        await asyncio.wait_for(cut.wait(), WITHIN)
        error = await catch_error(_rest(stream, seen))
        assert (error.code, error.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "SLOW_READER")
        assert f"after sequence {error.metadata['last_sequence']}" in error.message
        assert len(seen) < len(whole)
        seen += [message.event.sequence for message in await served.watch(debate, seen[-1])]
        assert seen == whole


async def test_a_client_that_was_cut_comes_back_by_itself_and_others_are_not_kept_waiting(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path, cut: asyncio.Event
) -> None:
    async with run_long_debate(gateway, gateway_server, tmp_path) as (served, narrow, debate):
        opened: list[int] = []

        def open_after(after: int) -> WatchStream:
            opened.append(after)
            return narrow.WatchDebate(
                orchestrator_pb2.WatchDebateRequest(debate_id=debate, after_sequence=after)
            )

        seen: list[int] = []
        async with asyncio.timeout(WITHIN):
            async for each in watch_events(open_after, 0, patience=10.0):
                assert isinstance(each, Event)
                if not seen:
                    await cut.wait()
                    assert kind_of((await served.watch(debate))[-1].event) == "closed"
                seen.append(each.sequence)
        assert len(opened) > 1
        assert seen == [message.event.sequence for message in await served.watch(debate)]


async def _rest(stream: Any, seen: list[int]) -> None:
    async for message in stream:
        seen.append(message.event.sequence)  # noqa: PERF401 (kept when the stream breaks)


async def test_what_is_sent_to_readers_that_stall_is_bounded_and_others_get_all(
    gateway: ScriptedGateway,
    gateway_server: RunningServer,
    tmp_path: Path,
    cut: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budgets: list[_NotedBudget] = []

    def create_budget(_: int) -> _NotedBudget:
        budgets.append(_NotedBudget(600_000))
        return budgets[-1]

    monkeypatch.setattr("parley.orchestrator.api.servicer.ByteBudget", create_budget)
    async with run_long_debate(gateway, gateway_server, tmp_path) as (served, narrow, debate):
        whole = [message.event.sequence for message in await served.watch(debate)]
        request = orchestrator_pb2.WatchDebateRequest(debate_id=debate)
        stalled = [narrow.WatchDebate(request) for _ in range(8)]
        for stream in stalled:
            await stream.read()
        await asyncio.wait_for(cut.wait(), WITHIN)
        assert [message.event.sequence for message in await served.watch(debate)] == whole
        for stream in stalled:
            stream.cancel()
    (budget,) = budgets
    assert 100_000 < budget.most <= 300_000, "one tenant has half"


class _NotedBudget(ByteBudget):
    """Notes the most bytes that were held at a time."""

    most = 0

    async def take(self, size: int, within: float | None = None) -> Share:
        share = await super().take(size, within)
        self.most = max(self.most, self.held)
        return share
