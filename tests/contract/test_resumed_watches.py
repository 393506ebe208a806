"""Watches that are resumed at the end of a closed debate end, each time, on every store."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.reading import log_name
from parley.orchestrator.watch.feed import Feeds
from parley.storage.opening import Store
from parley.storage.ports import Log, Record
from parley.v1.event_pb2 import Closed, Concluded
from tests.contract.conftest import rarely_on_a_server
from tests.support.passing_log import PassingLog
from tests.unit.orchestrator.made_logs import CREATED, DEBATE, log

TIMES = 500
TENANT = "default"


def make_closed_debate() -> Record:
    events = log(CREATED, create_event("concluded", Concluded()), create_event("closed", Closed()))
    return Record(1, "all", tuple(each.entry for each in events))


async def watch_to_the_end(feeds: Feeds) -> int:
    news = asyncio.Event()
    async with feeds.join(TENANT, DEBATE, news) as feed:
        while not feed.closed:
            await news.wait()
            news.clear()
        return feed.last


@rarely_on_a_server
async def test_five_hundred_watches_of_a_closed_debate_end(store: Store) -> None:
    await store.log.append(log_name(TENANT, DEBATE), make_closed_debate())
    feeds = Feeds(store.log)
    async with asyncio.timeout(120):
        for _ in range(TIMES // 10):
            assert await asyncio.gather(*(watch_to_the_end(Feeds(store.log)) for _ in range(9))) == [3] * 9
            assert await watch_to_the_end(feeds) == 3


class Swallowing(PassingLog):
    """Loses the first cancellation of a read, as a driver's call can on Python 3.11."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.swallowed = 0

    async def follow(self, log: str, after: int = 0) -> AsyncGenerator[Record, None]:
        while True:
            for each in await self._read_deaf(log, after):
                yield each

    async def _read_deaf(self, log: str, after: int) -> Sequence[Record]:
        try:
            await asyncio.sleep(0.01)
            return await self._log.read(log, after)
        except asyncio.CancelledError:
            self.swallowed += 1
            if self.swallowed % 2 == 0:
                raise
            return ()


async def test_a_watch_ends_though_its_store_swallows_a_cancellation(store: Store) -> None:
    await store.log.append(log_name(TENANT, DEBATE), make_closed_debate())
    feeds = Feeds(Swallowing(store.log))
    async with asyncio.timeout(60):
        for _ in range(5):
            assert await watch_to_the_end(feeds) == 3
