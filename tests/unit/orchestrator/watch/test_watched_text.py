"""The text of answers as they are written: who gets it, when, and how much of it waits."""

import asyncio
from contextlib import aclosing

from parley.orchestrator.watch.live_text import MAX_WAITING_PIECES
from parley.orchestrator.watch.watcher import Heartbeat
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import Closed, Warned
from parley.v1.orchestrator_pb2 import StepDelta
from tests.support.memory_log import MemoryLog, WrittenLog
from tests.unit.orchestrator.made_logs import make_success
from tests.unit.orchestrator.watch.watching import DEBATE, TENANT, Stand, delta


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
