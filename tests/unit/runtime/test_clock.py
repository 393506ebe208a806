import asyncio
from datetime import timedelta

import pytest

from parley.runtime.clock import Clock, SystemClock
from parley.runtime.clock_watch import ClockWatch
from tests.support.manual_clock import ManualClock


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()])
async def test_a_clock_tells_aware_utc_time_and_a_sleep_of_nothing_returns(clock: Clock) -> None:
    assert clock.now().utcoffset() == timedelta(0)
    before = clock.monotonic()
    async with asyncio.timeout(30):
        await clock.sleep(0)
        await clock.sleep(-1)
    assert clock.monotonic() >= before


async def test_the_system_clock_sleeps_as_long_as_it_is_told() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0.01)
    assert clock.monotonic() - before >= 0.009


async def test_the_manual_clock_wakes_sleepers_in_the_order_of_their_times() -> None:
    clock, woken = ManualClock(), []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    async with asyncio.TaskGroup() as group:
        for seconds in (3, 1, 2, 9):
            group.create_task(sleeper(seconds))
        await clock.sleeping(4)
        start = clock.now()
        clock.advance(3)
        assert clock.now() - start == timedelta(seconds=3)
        await asyncio.sleep(0)
        assert woken == [1, 2, 3]
        assert clock.sleepers == 1
        clock.advance(6)
    assert woken == [1, 2, 3, 9]


async def test_a_sleeper_that_was_cancelled_is_no_sleeper() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.sleeping()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.sleepers == 0
    clock.advance(10)


async def test_the_manual_clock_counts_a_sleep_from_its_call_though_its_task_begins_later() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(5))
    clock.advance(5)
    async with asyncio.timeout(30):
        await task


@pytest.mark.parametrize("jump", [timedelta(days=30), timedelta(days=-1)])
def test_a_clock_that_is_set_is_not_steady_for_an_hour(jump: timedelta) -> None:
    clock = ManualClock()
    watch = ClockWatch(clock)
    clock.advance(86_400)
    clock.jump(timedelta(minutes=59))
    assert watch.is_steady()
    clock.jump(jump)
    assert not watch.is_steady()
    clock.advance(3599)
    assert not watch.is_steady()
    clock.advance(1)
    assert watch.is_steady()
