"""Retries."""

import asyncio
import itertools

import pytest

from parley.runtime.backoff import Backoff, retry
from tests.support.manual_clock import ManualClock

BACKOFF = Backoff(first=1.0, maximum=5.0)


class Flaky:
    """Fails so many times, then answers with the number of the attempt."""

    def __init__(self, clock: ManualClock, failures: float, error: Exception | None = None) -> None:
        self._clock, self._failures, self._error = clock, failures, error or ConnectionError("away")
        self.attempts: list[float] = []

    async def __call__(self) -> int:
        self.attempts.append(self._clock.monotonic())
        if len(self.attempts) <= self._failures:
            raise self._error
        return len(self.attempts)


async def pass_time(clock: ManualClock, task: asyncio.Task[int]) -> None:
    """Let time pass, a second at a time, until the task is done."""
    while not task.done():
        if clock.sleepers:
            clock.advance(1.0)
        await asyncio.sleep(0)


def test_pauses_grow_up_to_the_maximum() -> None:
    assert list(itertools.islice(BACKOFF.pauses(), 5)) == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_the_first_pause_may_be_the_longest() -> None:
    assert list(itertools.islice(Backoff(first=1.0, maximum=1.0).pauses(), 2)) == [1.0, 1.0]


def test_jitter_is_the_part_of_a_pause_that_is_left_to_chance() -> None:
    backoff = Backoff(first=1.0, maximum=4.0, jitter=0.5)
    chances = iter((0.0, 0.5, 1.0))
    assert list(itertools.islice(backoff.pauses(lambda: next(chances)), 3)) == [1.0, 1.5, 2.0]


async def test_a_call_that_succeeds_is_made_once() -> None:
    clock = ManualClock()
    assert await retry(Flaky(clock, 0), on=ConnectionError, backoff=BACKOFF, clock=clock) == 1


async def test_attempts_are_paused_for_on_the_clock_that_is_handed_in() -> None:
    clock = ManualClock()
    flaky = Flaky(clock, 4)
    task = asyncio.create_task(retry(flaky, on=ConnectionError, backoff=BACKOFF, clock=clock))
    await pass_time(clock, task)
    assert await task == 5
    assert flaky.attempts == [0, 1, 3, 7, 12]


async def test_another_error_is_raised_at_once() -> None:
    clock = ManualClock()
    flaky = Flaky(clock, 1, ValueError("bad"))
    with pytest.raises(ValueError, match="bad"):
        await retry(flaky, on=ConnectionError, backoff=BACKOFF, clock=clock)
    assert flaky.attempts == [0]


async def test_an_error_may_be_told_by_a_function() -> None:
    clock = ManualClock()
    flaky = Flaky(clock, 1, ValueError("away"))
    task = asyncio.create_task(
        retry(flaky, on=lambda error: str(error) == "away", backoff=BACKOFF, clock=clock)
    )
    await pass_time(clock, task)
    assert await task == 2


@pytest.mark.parametrize(("attempts", "made"), [(1, [0]), (3, [0, 1, 3])])
async def test_attempts_are_bounded_and_the_last_error_is_raised(attempts: int, made: list[int]) -> None:
    clock = ManualClock()
    flaky = Flaky(clock, 9)
    task = asyncio.create_task(
        retry(flaky, on=ConnectionError, backoff=BACKOFF, clock=clock, attempts=attempts)
    )
    await pass_time(clock, task)
    with pytest.raises(ConnectionError, match="away"):
        await task
    assert flaky.attempts == made


@pytest.mark.parametrize(("seconds", "made"), [(0, [0]), (2.9, [0, 1]), (3, [0, 1, 3])])
async def test_no_attempt_begins_after_the_time_is_over(seconds: float, made: list[int]) -> None:
    clock = ManualClock()
    flaky = Flaky(clock, 9)
    task = asyncio.create_task(
        retry(flaky, on=ConnectionError, backoff=BACKOFF, clock=clock, seconds=seconds)
    )
    await pass_time(clock, task)
    with pytest.raises(ConnectionError, match="away"):
        await task
    assert flaky.attempts == made


async def test_who_waits_can_be_cancelled() -> None:
    clock = ManualClock()
    task = asyncio.create_task(retry(Flaky(clock, 9), on=ConnectionError, backoff=BACKOFF, clock=clock))
    await clock.sleeping()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_attempt_is_not_made_again() -> None:
    clock = ManualClock()
    failed = asyncio.Event()
    attempts = 0

    async def hang() -> int:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ConnectionError
        failed.set()
        await asyncio.Event().wait()
        return attempts

    task = asyncio.create_task(retry(hang, on=ConnectionError, backoff=BACKOFF, clock=clock))
    await clock.sleeping()
    clock.advance(1.0)
    await failed.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert attempts == 2
