"""Watching over a log in memory: what is shared, what is bounded, and what a reader that comes back sees."""

import asyncio
from contextlib import AsyncExitStack, aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.log.envelope import Envelope, create_event
from parley.orchestrator.watch.feed import Feed, KeptBytes
from parley.runtime.errors import ParleyError
from parley.runtime.wake_queue import WakeQueue
from parley.v1.debate_pb2 import DebateFailure, Outcome
from parley.v1.event_pb2 import Closed, Concluded, DebateCreated, DebateFailed, Resumed, Warned
from tests.support.memory_log import MemoryLog, SharedRecords, WrittenLog
from tests.unit.orchestrator.watch.watching import DEBATE, TENANT, Stand, Watched, delta, rest_of, take


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


async def test_a_feed_ends_with_its_last_watcher_and_begins_anew_with_the_next() -> None:
    stand = Stand()
    await stand.written.write(Warned(message="one"))
    for _ in range(2):
        async with aclosing(stand.watch()) as one, aclosing(stand.watch()) as two:
            assert [await anext(one), await anext(two)] == stand.written.events * 2
        assert not [task for task in asyncio.all_tasks() if "Feed.run" in repr(task)]


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
