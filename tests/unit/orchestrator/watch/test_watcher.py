"""Watching over a log in memory: what is shared, what is bounded, and what a reader that comes back sees."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.log.envelope import Envelope, create_event
from parley.orchestrator.log.events import CorruptEventError
from parley.orchestrator.watch.deltas import DeltaBroker, DeltaForwarder
from parley.orchestrator.watch.feed import Feed, Feeds, KeptBytes
from parley.orchestrator.watch.live_text import MAX_WAITING_PIECES
from parley.orchestrator.watch.watcher import DebateWatcher, Heartbeat, WatchItem
from parley.runtime.errors import ParleyError
from parley.runtime.wake_queue import WakeQueue
from parley.storage.ports import Record, StoreUnavailableError
from parley.v1.debate_pb2 import DebateFailure, Outcome, Work
from parley.v1.event_pb2 import Closed, Concluded, DebateCreated, DebateFailed, Resumed, Warned
from parley.v1.orchestrator_pb2 import StepDelta
from tests.support.memory_log import MemoryLog, SharedRecords, WrittenLog
from tests.support.orchestration import until
from tests.unit.orchestrator.made_logs import make_success

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


async def test_a_thousand_watchers_cost_as_many_reads_as_one_and_share_each_event() -> None:
    stand = Stand(MemoryLog(poll_interval=30))
    await stand.written.write(*(Warned(message=str(number)) for number in range(5)))
    seen: list[list[Envelope]] = [[] for _ in range(1000)]

    async def follow(events: list[Envelope]) -> None:
        async for each in stand.watch():
            assert isinstance(each, Envelope)
            events.append(each)

    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        for events in seen:
            tasks.create_task(follow(events))
        while not all(len(events) == 5 for events in seen):  # noqa: ASYNC110 (watchers tell of nothing)
            await asyncio.sleep(0)
        before = stand.log.reads
        for number in range(10):
            await stand.written.write(Warned(message=str(number)))
        await stand.written.write(Closed())
    assert before <= 3
    assert stand.log.reads == before, "what this replica appends it hands on without a read"
    assert seen[0] == stand.written.events
    assert all(all(mine is first for mine, first in zip(events, seen[0], strict=True)) for events in seen)


async def test_events_that_are_there_at_once_come_together_to_those_who_ask_for_batches() -> None:
    stand = Stand()
    large = "x" * 40_000
    await stand.written.write(Warned(message="first"), Warned(message="second"))
    for message in (large, large, "last"):
        await stand.written.write(Warned(message=message))
    await stand.written.write(Closed())
    async with asyncio.timeout(30):
        got = [each async for each in stand.watching.watch(TENANT, DEBATE, 0, text=False, batches=True)]
    first, *rest = stand.written.events
    assert got == [(first, *rest[:2]), tuple(rest[2:])]
    assert await stand.all() == list(range(1, 7))


async def test_news_for_hundreds_of_watchers_of_one_tenant_does_not_keep_another_ones_waiting() -> None:
    stand = Stand(MemoryLog(poll_interval=30))
    greedy = [WrittenLog(stand.log, "greedy", f"debate-{number}") for number in range(20)]
    told = 0

    async def count(log: WrittenLog) -> None:
        nonlocal told
        async for _ in stand.watching.watch("greedy", log.debate, 0, text=False):
            told += 1

    for each in (*greedy, stand.written):
        await each.write(Warned(message="first"))
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks, aclosing(stand.watch()) as modest:
        for each in greedy * 20:
            tasks.create_task(count(each))
        await anext(modest)
        while told < 400:  # noqa: ASYNC110 (watchers tell of nothing)
            await asyncio.sleep(0)
        for each in (*greedy, stand.written):
            await each.write(Closed())
        await anext(modest)
        assert told < 400 + 60, "of 400"


async def test_an_event_reaches_its_watchers_before_text_reaches_those_of_another_debate() -> None:
    stand = Stand(MemoryLog(poll_interval=30))
    other = WrittenLog(stand.log, TENANT, f"{DEBATE}-2")
    told = {DEBATE: 0, other.debate: 0}

    async def count(log: WrittenLog, *, text: bool) -> None:
        async for _ in stand.watching.watch(TENANT, log.debate, 0, text=text):
            told[log.debate] += 1

    for each in (stand.written, other):
        await each.write(Warned(message="first"))
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        for _ in range(100):
            tasks.create_task(count(stand.written, text=True))
            tasks.create_task(count(other, text=False))
        while set(told.values()) != {100}:  # noqa: ASYNC110 (watchers tell of nothing)
            await asyncio.sleep(0)
        stand.deltas.publish(DEBATE, delta())
        await other.write(Warned(message="second"))
        while told[other.debate] < 200:  # noqa: ASYNC110 (watchers tell of nothing)
            await asyncio.sleep(0)
        assert told[DEBATE] < 100 + 60, (
            "of 100: one beside each three that the event is for, and those on their way"
        )
        for each in (stand.written, other):
            await each.write(Closed())


async def test_a_feed_ends_with_its_last_watcher_and_begins_anew_with_the_next() -> None:
    stand = Stand()
    await stand.written.write(Warned(message="one"))
    for _ in range(2):
        async with aclosing(stand.watch()) as one, aclosing(stand.watch()) as two:
            assert [await anext(one), await anext(two)] == stand.written.events * 2
        assert not [task for task in asyncio.all_tasks() if "Feed.run" in repr(task)]


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


@given(
    batches=st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=8),
    cuts=st.lists(st.integers(0, 6), max_size=12),
    kept=st.sampled_from([1, 700, 8_000_000]),
)
def test_whoever_comes_back_to_one_replica_or_another_sees_every_event_once_and_in_order(
    batches: list[tuple[int, bool]], cuts: list[int], kept: int
) -> None:
    async def scenario() -> None:
        shared = SharedRecords()
        replicas = [Stand(MemoryLog(shared, 0.001), kept=kept) for _ in range(2)]
        written = replicas[0].written
        seen: list[Envelope] = []
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            tasks.create_task(write_some(replicas[0], batches))
            for number in range(10_000):
                last = seen[-1].sequence if seen else 0
                if seen and seen[-1].kind == "closed":
                    break
                count = cuts[number] if number < len(cuts) else None
                async with aclosing(replicas[number % 2].watch(last, text=True)) as stream:
                    await take(stream, count, seen)
        assert seen == written.events

    asyncio.run(scenario())


async def write_some(replica: Stand, batches: list[tuple[int, bool]]) -> None:
    """Write batches of so many events, and offer those of some to who watches at the replica."""
    written = replica.written
    for batch, is_offered in batches:
        await written.write(*(Warned(message=str(number)) for number in range(batch)))
        if is_offered:
            replica.feeds.offer(written.events[-batch:])
        await asyncio.sleep(0)
    await written.write(Concluded(outcome=Outcome()), Closed())


async def take(stream: AsyncGenerator[Watched, None], count: int | None, seen: list[Envelope]) -> None:
    """Take so many events, or (None) all until the stream ends; being cut as too slow is an end as well."""
    taken = 0
    with suppress(ParleyError):
        while taken != count and (each := await anext(stream, None)):
            if isinstance(each, Envelope):
                seen.append(each)
                taken += 1


async def test_a_watch_from_anywhere_in_a_log_that_is_longer_than_what_is_kept_misses_nothing() -> None:
    stand = Stand(kept=1000)
    for number in range(300):
        await stand.written.write(Warned(message=str(number)))
    await stand.written.write(Closed())
    for after in (0, 1, 150, 299, 300, 301):
        assert await stand.all(after) == list(range(after + 1, 302))


async def test_a_watcher_that_lets_more_pile_up_than_is_kept_is_cut_and_told_where_to_go_on() -> None:
    stand = Stand(kept=1000)
    await stand.written.write(Warned(message="first"))
    async with asyncio.timeout(30), aclosing(stand.watch()) as slow, aclosing(stand.watch()) as fast:
        assert await anext(slow) == await anext(fast) == stand.written.events[0]
        waiting = asyncio.ensure_future(anext(slow))
        for number in range(20):
            await stand.written.write(Warned(message=str(number)))
            assert await anext(fast) == stand.written.events[-1]
        last = await waiting
        assert last == stand.written.events[1]
        got: list[Watched] = [last]
        with pytest.raises(ParleyError) as caught:
            await rest_of(slow, got)
        last = got[-1]
    assert isinstance(last, Envelope)
    assert caught.value.reason == "SLOW_READER"
    assert caught.value.metadata == {"last_sequence": str(last.sequence)}
    await stand.written.write(Closed())
    assert await stand.all(last.sequence) == list(range(last.sequence + 1, 23))


async def rest_of(stream: AsyncGenerator[Watched, None], got: list[Watched]) -> None:
    async for each in stream:
        got.append(each)  # noqa: PERF401 (kept when the stream breaks)


async def test_text_that_waits_for_a_watcher_is_bounded_and_the_oldest_goes_first() -> None:
    stand = Stand()
    await stand.written.write(Warned(message="first"))
    async with asyncio.timeout(30), aclosing(stand.watch(text=True)) as slow:
        await anext(slow)
        for offset in range(MAX_WAITING_PIECES + 100):
            stand.deltas.publish(DEBATE, delta(offset=9 * offset))
        heard = [await anext(slow) for _ in range(MAX_WAITING_PIECES)]
    assert heard == [delta(offset=9 * offset) for offset in range(100, MAX_WAITING_PIECES + 100)]


async def test_pieces_that_wait_come_as_one_where_they_are_of_one_text_and_without_a_gap() -> None:
    stand = Stand()
    await stand.written.write(Warned(message="first"))
    async with asyncio.timeout(30), aclosing(stand.watch(text=True)) as stream:
        await anext(stream)
        for key, offset in (("a", 0), ("b", 0), ("a", 4), ("a", 8), ("b", 40), ("b", 44)):
            stand.deltas.publish(DEBATE, delta(key, offset))
        heard = [await anext(stream) for _ in range(3)]
    assert heard == [
        delta("a", text="text" * 3),
        delta("b"),
        delta("b", 40, text="text" * 2),
    ]


async def test_a_watcher_that_is_behind_with_events_is_sent_no_text() -> None:
    stand = Stand()
    await stand.written.write(Warned(message="first"))
    async with asyncio.timeout(30), aclosing(stand.watch(text=True)) as slow, aclosing(stand.watch()) as fast:
        await anext(slow)
        await anext(fast)
        for number in range(100):
            await stand.written.write(Warned(message=str(number)))
            await anext(fast)
        stand.deltas.publish(DEBATE, delta())
        assert [await anext(slow) for _ in range(100)] == stand.written.events[1:]
        stand.deltas.publish(DEBATE, delta(offset=9))
        assert await anext(slow) == delta(offset=9)


async def test_text_that_comes_after_its_steps_outcome_is_void_and_that_of_a_new_attempt_is_not() -> None:
    stand = Stand()
    outcome = make_success(Work(activity="proposal", agent_id="ada", round=1), "answer")
    await stand.written.write(outcome)
    async with asyncio.timeout(30), aclosing(stand.watch(text=True)) as stream:
        await anext(stream)
        for attempt in (1, 2):
            stand.deltas.publish(DEBATE, delta(outcome.key, attempt=attempt))
        assert await anext(stream) == delta(outcome.key, attempt=2)


async def test_signs_of_life_are_shown_while_text_flows() -> None:
    stand = Stand(heartbeat_seconds=0.05)
    await stand.written.write(Warned(message="first"))
    async with asyncio.timeout(30), aclosing(stand.watch(text=True)) as stream:
        await anext(stream)
        heartbeats = pieces = 0
        while heartbeats < 3:
            stand.deltas.publish(DEBATE, delta(offset=pieces))
            each = await anext(stream)
            heartbeats += isinstance(each, Heartbeat)
            pieces += isinstance(each, StepDelta)
            await asyncio.sleep(0)
    assert pieces > 3


async def test_a_watch_of_a_failed_debate_ends_unless_it_was_resumed_elsewhere_in_the_meantime() -> None:
    shared = SharedRecords()
    there, here = Stand(MemoryLog(shared)), Stand(MemoryLog(shared, poll_interval=0.2))
    failed = create_event(
        "failed", DebateFailed(failure=DebateFailure(reason="QUORUM", message="nobody answered")), 1
    )
    await there.written.write(Warned(message="one"), failed)
    assert await here.all() == [1, 2]
    async with aclosing(here.watch()) as holding:  # keeps the feed, which has not heard of what follows
        assert [await anext(holding), await anext(holding)] == there.written.events
        await there.written.write(create_event("resumed", Resumed(), 2))
        await there.written.write(Concluded(outcome=Outcome()), Closed())
        assert await here.all(2) == [3, 4, 5]


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


async def test_text_and_events_that_are_there_at_once_come_together_the_text_first() -> None:
    stand = Stand()
    await stand.written.write(Warned(message="first"))
    watch = stand.watching.watch(TENANT, DEBATE, 0, text=True, batches=True)
    async with asyncio.timeout(30), aclosing(watch), aclosing(stand.watch()) as fast:
        assert await anext(watch) == (stand.written.events[0],)
        await anext(fast)
        for key in ("a", "b", "a"):
            stand.deltas.publish(DEBATE, delta(key, 0 if key == "b" else 4))
        await stand.written.write(Warned(message="second"))
        await anext(fast)
        text = delta("a", 4), delta("b"), delta("a", 4)
        assert await anext(watch) == (*text, stand.written.events[1])
        stand.deltas.publish(DEBATE, delta())
        assert await anext(watch) == (delta(),)
        stand.deltas.publish(DEBATE, delta("large"))
        await stand.written.write(*(Warned(message="x" * 40_000) for _ in range(2)))
        for _ in range(2):
            await anext(fast)
        one, two = stand.written.events[-2:]
        assert [await anext(watch), await anext(watch)] == [
            (delta("large"), one),
            (two,),
        ]
        stand.deltas.publish(DEBATE, delta("before an event that fills a message"))
        await stand.written.write(Warned(message="x" * 70_000))
        await anext(fast)
        assert [await anext(watch), await anext(watch)] == [
            (delta("before an event that fills a message"),),
            (stand.written.events[-1],),
        ]


async def test_watchers_at_one_place_get_the_same_objects_and_each_in_the_way_it_asked_for() -> None:
    stand = Stand()
    await stand.written.write(Warned(message="first"))
    async with asyncio.timeout(30), AsyncExitStack() as stack:
        one, two, alone = [
            await stack.enter_async_context(
                aclosing(stand.watching.watch(TENANT, DEBATE, 0, text=True, batches=batches))
            )
            for batches in (True, True, False)
        ]
        plain = await stack.enter_async_context(aclosing(stand.watch()))
        assert [await anext(each) for each in (one, two, alone)] == [(stand.written.events[0],)] * 3
        await anext(plain)
        for offset in (0, 4):
            stand.deltas.publish(DEBATE, delta(offset=offset))
        await stand.written.write(Warned(message="second"))
        assert await anext(plain) == stand.written.events[1]
        batch = await anext(one)
        assert batch == (delta(text="texttext"), stand.written.events[1])
        assert await anext(two) is batch
        assert [await anext(alone), await anext(alone)] == [(part,) for part in batch]


async def test_a_watcher_gets_no_text_of_an_earlier_time_when_the_debate_was_watched_for_its_text() -> None:
    stand = Stand()
    await stand.written.write(Warned(message="first"))
    async with asyncio.timeout(30), aclosing(stand.watch()) as plain:
        await anext(plain)
        for text in ("earlier", "later"):
            async with aclosing(stand.watch(text=True)) as stream:
                assert await anext(stream) == stand.written.events[0]
                stand.deltas.publish(DEBATE, delta(text=text))
                assert await anext(stream) == delta(text=text)


async def test_what_watchers_got_is_not_kept_longer_than_its_events() -> None:
    stand = Stand(kept=1)
    await stand.written.write(Warned(message="first"))
    async with (
        asyncio.timeout(30),
        stand.feeds.join(TENANT, DEBATE, asyncio.Event()) as feed,
        aclosing(stand.watch()) as stream,
    ):
        await anext(stream)
        for number in range(5):
            await stand.written.write(Warned(message=str(number)))
            await anext(stream)
        await stand.written.write(Warned(message="newest"))
        while feed.last < 7:  # noqa: ASYNC110 (nobody is told of it)
            await asyncio.sleep(0)
        assert not feed.batches


async def test_a_watch_has_the_paths_of_documents_and_not_their_texts() -> None:
    stand = Stand()
    created = DebateCreated(request_id="r")
    created.spec.question = "Why?"
    created.spec.context.add(path="a.md", text="words " * 100_000)
    await stand.written.write(created, Closed())
    async with aclosing(stand.watch()) as watch:
        first = await anext(watch)
    assert isinstance(first, Envelope)
    spec = first.message.debate_created.spec
    assert [(each.path, each.text) for each in spec.context] == [("a.md", "")]
    assert (spec.question, first.message.debate_created.request_id) == ("Why?", "r")
    assert first.message.ByteSize() < 1000
    assert (first.sequence, first.hash) == (1, stand.written.events[0].hash)


async def test_a_watcher_that_reads_the_log_itself_gets_no_texts_of_documents_either() -> None:
    stand = Stand(kept=1)
    created = DebateCreated()
    created.spec.context.add(path="a.md", text="words " * 100_000)
    await stand.written.write(created, Warned(message="one"), Closed())
    async with aclosing(stand.watch()) as watch:
        events = [each async for each in watch if isinstance(each, Envelope)]
    assert [each.sequence for each in events] == [1, 2, 3]
    assert events[0].message.ByteSize() < 1000


async def test_all_feeds_together_keep_a_bounded_number_of_bytes() -> None:
    kept, log = KeptBytes(limit=100_000), MemoryLog()
    async with asyncio.TaskGroup() as tasks:
        feeds, running, news = [], [], []
        for number in range(5):
            debate = f"{DEBATE}{number}"
            written = WrittenLog(log, TENANT, debate)
            await written.write(*(Warned(message="x" * 10_000) for _ in range(8)))
            feeds.append(Feed(WakeQueue(), kept=kept))
            news.append(asyncio.Event())
            feeds[-1].readers.add(news[-1])
            running.append(tasks.create_task(feeds[-1].run(log, TENANT, debate, 60)))
        async with asyncio.timeout(30):
            for each, feed in zip(news, feeds, strict=True):
                while not feed.is_complete:
                    await each.wait()
                    each.clear()
        assert kept.total <= kept.limit
        assert all(feed.events_after(7) for feed in feeds), "the newest event of each is kept"
        for task in running:
            task.cancel()
    assert (kept.total, kept.feeds) == (0, set())
