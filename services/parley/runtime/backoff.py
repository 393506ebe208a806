"""Retries after growing pauses, with tenacity and the injected clock."""

import math
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from parley.runtime.clock import Clock

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")


class Backoff(Struct, frozen=True):
    """Pauses between attempts, in seconds.

    Attributes:
        first: The first pause.
        maximum: The longest pause.
        factor: How many times longer each pause is than the one before.
        jitter: The random part of each pause, 0 to 1, so that many callers do not retry at the same time.
    """

    first: float
    maximum: float
    factor: float = 2.0
    jitter: float = 0.0

    def pauses(self, chance: Callable[[], float] = random.random) -> Iterator[float]:
        """Yield the pauses without end; `chance` returns 0 to 1."""
        pause = self.first
        while True:
            yield pause * (1 - self.jitter * chance())
            pause = min(pause * self.factor, self.maximum)


async def retry(
    call: Callable[[], Awaitable[T]],
    *,
    on: type[Exception] | Callable[[BaseException], bool],
    backoff: Backoff,
    clock: Clock,
    attempts: int | None = None,
    seconds: float | None = None,
) -> T:
    """Return the result of a call. Repeat the call after an error that may be temporary.

    Args:
        call: Starts one attempt.
        on: The type of a temporary error, or a predicate for it. Any other error is raised at once.
        backoff: The pauses between the attempts.
        clock: Waits, and measures `seconds`.
        attempts: The maximum number of attempts; no limit by default.
        seconds: How long after the start the last attempt may start; no limit by default.

    Raises:
        Exception: the error of the last attempt.
    """
    ends = math.inf if seconds is None else clock.monotonic() + seconds
    try:
        return await call()  # tenacity takes 60 microseconds a call: skip it for calls that succeed at once
    except Exception as error:
        may_pass = isinstance(error, on) if isinstance(on, type) else on(error)
        if attempts == 1 or not may_pass:
            raise
        first: Exception | None = error

    from tenacity import AsyncRetrying, retry_if_exception, retry_if_exception_type

    async def attempt() -> T:
        nonlocal first
        if first is not None:
            failed, first = first, None
            raise failed
        return await call()

    def is_last(state: "RetryCallState") -> bool:
        return state.attempt_number == attempts or clock.monotonic() + state.upcoming_sleep > ends

    pauses = backoff.pauses()
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(on) if isinstance(on, type) else retry_if_exception(on),
        wait=lambda _: next(pauses),
        stop=is_last,
        sleep=clock.sleep,
        reraise=True,
    )
    result: T = await retrying(attempt)
    return result
