"""Slots of a route: bounds are kept, debates take turns, and nobody is left behind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.routing.queue import Limits, NoSlot, RouteQueue, Slot


@asynccontextmanager
async def slot_of(
    queue: RouteQueue, debate: str, tokens: int, within: float | None = None
) -> AsyncIterator[Slot]:
    with await queue.take_slot(debate, tokens, within) as slot:
        yield slot


async def hold(
    queue: RouteQueue, debate: str, order: list[str], gate: asyncio.Event, tokens: int = 0
) -> None:
    async with slot_of(queue, debate, tokens):
        order.append(debate)
        await gate.wait()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_debates_take_turns_however_many_calls_each_has_waiting() -> None:
    queue, gate, order = RouteQueue(Limits(concurrency=1)), asyncio.Event(), list[str]()
    async with asyncio.TaskGroup() as tasks:
        for debate in ("first", *["big"] * 5, "small", "small"):
            tasks.create_task(hold(queue, debate, order, gate))
        await settle()
        assert (queue.in_flight, queue.waiting) == (1, 7)
        gate.set()
    assert order == ["first", "big", "small", "big", "small", "big", "big", "big"]
    assert (queue.in_flight, queue.waiting) == (0, 0)


async def test_who_gives_up_waiting_leaves_no_gap_and_takes_no_slot() -> None:
    queue, gate, order = RouteQueue(Limits(concurrency=1)), asyncio.Event(), list[str]()
    waiting = [asyncio.create_task(hold(queue, name, order, gate)) for name in "abc"]
    await settle()
    waiting[1].cancel()
    gate.set()
    await asyncio.wait(waiting)
    assert order == ["a", "c"]
    assert (queue.in_flight, queue.waiting) == (0, 0)


async def test_who_is_cancelled_in_its_turn_hands_the_slot_on() -> None:
    queue, gate, order = RouteQueue(Limits(concurrency=1)), asyncio.Event(), list[str]()
    gate.set()
    async with slot_of(queue, "x", 0):
        waiting = [asyncio.create_task(hold(queue, name, order, gate)) for name in "ab"]
        await settle()
    waiting[0].cancel()  # the slot was given to it, and it has not run since
    await asyncio.wait(waiting)
    assert order == ["b"]
    assert queue.in_flight == 0


async def test_requests_a_minute_are_kept_after_a_burst() -> None:
    queue, loop = RouteQueue(Limits(requests_per_minute=1200)), asyncio.get_running_loop()
    began = loop.time()
    for _ in range(200):  # ten seconds' worth at once
        async with slot_of(queue, "d", 0):
            pass
    assert loop.time() - began < 5
    for _ in range(4):
        async with slot_of(queue, "d", 0):
            pass
    assert loop.time() - began > 4 / 20 - 0.05, "counted from the first, since then slots come back"


async def test_tokens_are_counted_as_they_were_used_and_not_as_they_were_guessed() -> None:
    queue = RouteQueue(Limits(tokens_per_minute=60_000))
    async with slot_of(queue, "d", 10_000) as slot:
        slot.tokens = 100
    async with asyncio.timeout(8), slot_of(queue, "d", 9_500):
        pass


async def test_a_call_larger_than_the_bound_goes_when_nothing_else_was_used() -> None:
    queue = RouteQueue(Limits(tokens_per_minute=600))
    async with asyncio.timeout(30), slot_of(queue, "d", 50_000) as slot:
        slot.tokens = 110
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2), slot_of(queue, "d", 100):
            pass


async def test_an_endpoint_is_left_alone_for_as_long_as_it_asks_but_not_for_ever() -> None:
    queue, loop = RouteQueue(Limits()), asyncio.get_running_loop()
    began = loop.time()
    queue.rest(5)
    queue.rest(2)
    assert began + 5 <= queue.rests_until <= loop.time() + 5
    queue.rest(86_400)
    assert queue.rests_until - loop.time() <= 300


async def test_who_waits_for_so_long_only_leaves_the_queue_as_it_was() -> None:
    queue, loop = RouteQueue(Limits(concurrency=1)), asyncio.get_running_loop()
    async with slot_of(queue, "a", 0):
        began = loop.time()
        with pytest.raises(NoSlot):
            async with slot_of(queue, "b", 0, within=0.1):
                pass
        assert 0.1 <= loop.time() - began < 10
        assert (queue.in_flight, queue.waiting) == (1, 0)
    async with asyncio.timeout(30), slot_of(queue, "b", 0, within=0.1):
        assert queue.in_flight == 1
    assert queue.in_flight == 0


async def test_a_slot_that_cannot_come_in_time_is_not_waited_for() -> None:
    queue, loop = RouteQueue(Limits(requests_per_minute=6)), asyncio.get_running_loop()
    async with slot_of(queue, "a", 0, within=5):
        pass
    began = loop.time()
    with pytest.raises(NoSlot):
        async with slot_of(queue, "a", 0, within=5):
            pass
    assert loop.time() - began < 4


async def test_other_bounds_hold_at_once_for_those_who_wait_and_those_who_come() -> None:
    queue, gate, order = RouteQueue(Limits(concurrency=1)), asyncio.Event(), list[str]()
    async with asyncio.TaskGroup() as tasks:
        for name in "abcd":
            tasks.create_task(hold(queue, name, order, gate))
        await settle()
        queue.change(Limits(concurrency=3))
        await settle()
        assert (queue.in_flight, queue.waiting) == (3, 1)
        queue.change(Limits(concurrency=1, requests_per_minute=600))
        gate.set()
    assert order == list("abcd")
    assert (queue.in_flight, queue.waiting) == (0, 0)


async def test_a_rate_that_was_used_up_stays_so_when_it_is_changed() -> None:
    queue = RouteQueue(Limits(requests_per_minute=6))
    async with slot_of(queue, "d", 0):
        pass
    queue.change(Limits(requests_per_minute=12))
    with pytest.raises(NoSlot):
        async with slot_of(queue, "d", 0, within=0.5):
            pass


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.booleans()), max_size=30),
)
def test_the_bound_holds_and_everyone_is_served(concurrency: int, calls: list[tuple[str, int, bool]]) -> None:
    async def run() -> None:
        queue, most, served = RouteQueue(Limits(concurrency=concurrency)), 0, 0

        async def call(debate: str, turns: int) -> None:
            nonlocal most, served
            async with slot_of(queue, debate, 0):
                most = max(most, queue.in_flight)
                for _ in range(turns):
                    await asyncio.sleep(0)
            served += 1

        tasks = [asyncio.create_task(call(debate, turns)) for debate, turns, _ in calls]
        await asyncio.sleep(0)
        for task, (_, _, gives_up) in zip(tasks, calls, strict=True):
            if gives_up:
                task.cancel()
        async with asyncio.timeout(30):
            await asyncio.gather(*tasks, return_exceptions=True)
        assert most <= concurrency
        assert served >= sum(not gives_up for _, _, gives_up in calls)
        assert (queue.in_flight, queue.waiting) == (0, 0)

    asyncio.run(run())
