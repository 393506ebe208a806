"""A watcher of debates over a log in memory, and what its watchers get."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress

from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.watch.deltas import DeltaBroker, DeltaForwarder
from parley.orchestrator.watch.feed import Feeds
from parley.orchestrator.watch.watcher import DebateWatcher, Heartbeat, WatchItem
from parley.runtime.errors import ParleyError
from parley.v1.orchestrator_pb2 import StepDelta
from tests.support.memory_log import MemoryLog, WrittenLog

DEBATE = "deb-20300101-000000-aaaaaaaa"


TENANT = "acme"


class NoForwarding(DeltaForwarder):
    """All debates are run here."""

    def __init__(self) -> None:
        pass

    @asynccontextmanager
    async def forward_while_watched(self, tenant: str, debate: str) -> AsyncGenerator[None, None]:
        yield


Watched = Envelope | StepDelta | Heartbeat


async def unpack(items: AsyncGenerator[WatchItem, None]) -> AsyncGenerator[Watched, None]:
    """What a watch yields to who does not ask for batches: always one thing alone."""
    async with aclosing(items):
        async for each in items:
            if isinstance(each, Heartbeat):
                yield each
            else:
                (alone,) = each
                yield alone


class Stand:
    """One replica's watching."""

    def __init__(
        self, log: MemoryLog | None = None, *, kept: int = 8_000_000, heartbeat_seconds: float = 60
    ) -> None:
        self.log = log or MemoryLog()
        self.deltas = DeltaBroker()
        self.written = WrittenLog(self.log, TENANT, DEBATE)
        self.feeds = Feeds(self.log, kept, heartbeat_seconds, self.deltas.wake_queues)
        self.watching = DebateWatcher(self.log, self.feeds, self.deltas, NoForwarding())

    def watch(self, after: int = 0, *, text: bool = False) -> AsyncGenerator[Watched, None]:
        return unpack(self.watching.watch(TENANT, DEBATE, after, text=text))

    async def all(self, after: int = 0) -> list[int]:
        """The sequences of a watch that ends."""
        async with asyncio.timeout(30):
            return [each.sequence async for each in self.watch(after) if isinstance(each, Envelope)]


def delta(key: str = "1/proposal/ada", offset: int = 0, attempt: int = 1, text: str = "text") -> StepDelta:
    return StepDelta(key=key, step_attempt=attempt, route_attempt=1, offset=offset, text=text)


async def take(stream: AsyncGenerator[Watched, None], count: int | None, seen: list[Envelope]) -> None:
    """Take so many events, or (None) all until the stream ends; being cut as too slow is an end as well."""
    taken = 0
    with suppress(ParleyError):
        while taken != count and (each := await anext(stream, None)):
            if isinstance(each, Envelope):
                seen.append(each)
                taken += 1


async def rest_of(stream: AsyncGenerator[Watched, None], got: list[Watched]) -> None:
    async for each in stream:
        got.append(each)  # noqa: PERF401 (kept when the stream breaks)
