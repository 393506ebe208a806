"""A clock that moves on by itself whenever nothing else does, so that whatever is waited for by time comes soon."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from parley.orchestrator.engine.inbox import Inbox
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.v1 import gateway_pb2, gateway_pb2_grpc
from tests.support.log_reader import LogReader
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage

_QUIET_LOOKS = 8
"""Looks in a row at which nothing had happened: only time is waited for then."""


@asynccontextmanager
async def time_flies(stage: Backstage, clock: ManualClock) -> AsyncIterator[ManualClock]:
    """Advance the clock by 300 seconds whenever the debates on this stage wait for nothing else.

    It stands while a person is asked: they do come, and on a busy machine they may take their time.
    """
    moving = asyncio.create_task(_move(stage, clock))
    try:
        yield clock
    finally:
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)


async def _move(stage: Backstage, clock: ManualClock) -> None:
    reader = LogReader(stage)
    before, quiet = None, 0
    while True:
        await asyncio.sleep(0.01)
        await _wait_for_begun(stage)
        now, is_steered = await _look(stage, reader)
        quiet = quiet + 1 if now == before and not is_steered else 0
        before = now
        if quiet and quiet % _QUIET_LOOKS == 0:
            clock.advance(300)


async def _wait_for_begun(stage: Backstage) -> None:
    """Wait in the queues that everybody waits in: where the disk or the machine is slow, a look takes longer too."""
    await stage.store.documents.update(DEBATES, "nobody's", {"epoch": 0})
    gateway = gateway_pb2_grpc.GatewayServiceStub(stage.channel)
    await gateway.ListAgents(gateway_pb2.ListAgentsRequest())


async def _look(stage: Backstage, reader: LogReader) -> tuple[object, bool]:
    """What has happened so far, and whether a person's word is waited for or on its way."""
    owned = await DebateIndex(stage.store.documents).list_owned()
    is_asked = [bool((await reader.recorded(record.debate)).open_checkpoints) for record in owned]
    debates = [(record.key, record.epoch, reader.length(record.debate)) for record in owned]
    calls = [(asked.call, asked.end) for asked in stage.gateway.calls]
    words = await Inbox(stage.store.documents).list_waiting()
    return (calls, debates), any(is_asked) or bool(words)
