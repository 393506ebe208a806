"""When the log of a debate is read, and when it is followed."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from parley.orchestrator.log.events import CorruptEventError
from parley.orchestrator.watch.feed import Feed, KeptBytes
from parley.runtime.wake_queue import WakeQueue
from parley.storage.ports import Record, StoreUnavailableError
from parley.v1.event_pb2 import Closed, Warned
from tests.support.memory_log import MemoryLog, WrittenLog
from tests.support.orchestration import until
from tests.unit.orchestrator.watch.watching import DEBATE, TENANT, Stand


async def test_what_this_process_records_comes_as_it_was_recorded_and_once() -> None:
    stand = Stand(MemoryLog(poll_interval=30))
    await stand.written.write(Warned(message="before"))
    async with asyncio.timeout(20), aclosing(stand.watch()) as watched:
        await anext(watched)
        await stand.written.write(Warned(message="one"), Warned(message="two"))
        stand.feeds.offer(stand.written.events[1:])
        assert await anext(watched) is stand.written.events[1]
        assert await anext(watched) is stand.written.events[2]
        await stand.written.write(Closed())
        assert [each async for each in watched] == stand.written.events[3:]


class FollowedLog(MemoryLog):
    """Counts its followers so far, and the records that they were given."""

    followed = followers = 0

    async def follow(self, log: str, after: int = 0) -> AsyncGenerator[Record, None]:
        self.followers += 1
        async with aclosing(super().follow(log, after)) as records:
            async for record in records:
                self.followed += 1
                yield record


async def test_a_log_is_not_followed_while_this_process_records_and_all_the_same_nothing_is_missed() -> None:
    log = FollowedLog(poll_interval=30)
    stand = Stand(log)
    await stand.written.write(Warned(message="before"))
    async with asyncio.timeout(20), aclosing(stand.watch()) as watched:
        await anext(watched)
        for number in range(100):
            await stand.written.write(Warned(message=str(number)))
            stand.feeds.offer(stand.written.events[-1:])
            assert await anext(watched) is stand.written.events[-1]
            for _ in range(10):
                await asyncio.sleep(0)  # whoever follows the log has its turn
        assert log.followed < 25
        await stand.written.write(Closed())
        assert [each async for each in watched] == stand.written.events[-1:]


async def test_a_log_that_this_process_records_is_read_now_and_then_and_followed_once_another_one_writes_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("parley.orchestrator.watch.feed._OFFERS_SECONDS", 0.02)
    log = FollowedLog(poll_interval=30)
    stand = Stand(log)
    await stand.written.write(Warned(message="before"))

    async def is_read_three_times() -> bool:
        return log.reads >= reads + 3

    async with asyncio.timeout(20), aclosing(stand.watch()) as watched:
        await anext(watched)
        await until(lambda: _is_followed(log), "the log is followed")
        await stand.written.write(Warned(message="offered"))
        stand.feeds.offer(stand.written.events[-1:])
        await anext(watched)
        reads = log.reads
        await until(is_read_three_times, "it is read while nothing comes")
        assert log.followers == 1
        await stand.written.write(Warned(message="by another process"))
        assert (await anext(watched)) == stand.written.events[-1]
        await stand.written.write(Closed())
        assert [each async for each in watched] == stand.written.events[-1:]
        assert log.followers == 2


async def _is_followed(log: FollowedLog) -> bool:
    return log.followers == 1


async def test_a_log_is_followed_again_as_soon_as_this_process_does_not_run_the_debate_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("parley.orchestrator.watch.feed._OFFERS_SECONDS", 3600)
    log = FollowedLog(poll_interval=30)
    stand = Stand(log)
    await stand.written.write(Warned(message="before"))
    async with asyncio.timeout(20), aclosing(stand.watch()) as watched:
        await anext(watched)
        await until(lambda: _is_followed(log), "the log is followed")
        for number in (1, 2):  # it runs the debate, another process does, and it runs it again
            await stand.written.write(Warned(message="offered"))
            stand.feeds.offer(stand.written.events[-1:])
            await anext(watched)
            stand.feeds.end_offers(TENANT, DEBATE)
            await stand.written.write(Warned(message="by another process"))
            assert await anext(watched) == stand.written.events[-1]
            assert log.followers == 1 + number


async def test_the_log_of_a_debate_that_this_process_runs_is_read_once_and_not_followed() -> None:
    log = FollowedLog(poll_interval=30)
    stand = Stand(log)
    await stand.written.write(Warned(message="before"))
    stand.feeds.offer(stand.written.events)
    async with asyncio.timeout(20), aclosing(stand.watch()) as watched:
        await anext(watched)
        await stand.written.write(Warned(message="offered"))
        stand.feeds.offer(stand.written.events[-1:])
        assert await anext(watched) is stand.written.events[-1]
        assert (log.reads, log.followers) == (1, 0)
        stand.feeds.end_offers(TENANT, DEBATE)
        await stand.written.write(Closed())
        assert [each async for each in watched] == stand.written.events[-1:]


class HeldLog(MemoryLog):
    """Keeps back the first answer to a read."""

    def __init__(self) -> None:
        super().__init__(poll_interval=30)
        self.has_read, self.may_answer = asyncio.Event(), asyncio.Event()

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        records = await super().read(log, after, limit)
        self.has_read.set()
        await self.may_answer.wait()
        return records


async def test_what_is_offered_while_the_log_is_read_for_the_first_time_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("parley.orchestrator.watch.feed._OFFERS_SECONDS", 3600)
    log = HeldLog()
    stand = Stand(log)
    await stand.written.write(Warned(message="before"))
    stand.feeds.offer(stand.written.events)
    async with asyncio.timeout(20), aclosing(stand.watch()) as watched:
        first = asyncio.ensure_future(anext(watched))
        await log.has_read.wait()
        await stand.written.write(Closed())
        stand.feeds.offer(stand.written.events[-1:])
        log.may_answer.set()
        assert [await first, *[each async for each in watched]] == stand.written.events


async def test_what_is_offered_before_what_precedes_it_comes_with_the_log() -> None:
    stand = Stand()
    await stand.written.write(Warned(message="one"))
    async with asyncio.timeout(20), aclosing(stand.watch()) as watched:
        await anext(watched)
        await stand.written.write(Warned(message="two"))
        await stand.written.write(Closed())
        stand.feeds.offer(stand.written.events[2:])
        assert [each async for each in watched] == stand.written.events[1:]


async def test_what_is_offered_while_the_log_is_opened_comes_once() -> None:
    stand = Stand(MemoryLog(poll_interval=30))
    await stand.written.write(Warned(message="one"))
    async with asyncio.timeout(20), aclosing(stand.watch()) as watched:
        await anext(watched)
        await stand.written.write(Warned(message="x" * 2_000_000))
        for _ in range(5):
            await asyncio.sleep(0)  # its opening in a thread begins
        stand.feeds.offer(stand.written.events[1:])
        await stand.written.write(Closed())
        assert [each async for each in watched] == stand.written.events[1:]


async def test_trouble_with_the_log_is_heard_by_all_watchers_and_the_next_ones_begin_anew() -> None:
    stand = Stand(MemoryLog(poll_interval=0.01))
    await stand.written.write(Warned(message="one"))
    streams = [stand.watch() for _ in range(3)]
    for stream in streams:
        assert await anext(stream) == stand.written.events[0]
    stand.log.shared.broken = StoreUnavailableError("away")
    for stream in streams:
        with pytest.raises(StoreUnavailableError):
            await asyncio.wait_for(anext(stream), 30)
    stand.log.shared.broken = None
    await stand.written.write(Closed())
    assert await stand.all() == [1, 2]


async def test_a_feed_whose_log_is_away_keeps_nothing_that_is_recorded_later() -> None:
    kept, log = KeptBytes(), MemoryLog(poll_interval=0.01)
    written = WrittenLog(log, TENANT, DEBATE)
    feed = Feed(WakeQueue(), kept=kept)
    await written.write(Warned(message="one"))
    async with asyncio.timeout(30):
        reading = asyncio.create_task(feed.run(log, TENANT, DEBATE, 60))
        while not feed.is_complete:  # noqa: ASYNC110 (nobody is told of it)
            await asyncio.sleep(0)
        log.shared.broken = StoreUnavailableError("away")
        await reading
    assert feed.failure is log.shared.broken
    await written.write(Warned(message="two"))
    feed.offer(written.events[1:])
    assert not kept.total


async def test_a_damaged_event_ends_a_watch_and_is_not_shown() -> None:
    stand = Stand()
    await stand.written.write(Warned(message="one"))
    async with aclosing(stand.watch()) as stream:
        assert await anext(stream) == stand.written.events[0]
        entry = stand.log.shared.records[f"{TENANT}/{DEBATE}"][0].entries[0]
        damaged = entry.replace(b"one", b"two")
        await stand.log.append(f"{TENANT}/{DEBATE}", Record(2, "x", (damaged,)))
        with pytest.raises(CorruptEventError):
            await asyncio.wait_for(anext(stream), 30)
