"""Reads and writes of the store that are made again while it does not answer, and never left half way."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from parley.runtime.backoff import Backoff, retry
from parley.runtime.clock import SystemClock
from parley.storage.ports import StoreUnavailableError

__all__ = ["BACKOFF", "patiently", "to_its_end"]

BACKOFF: Final = Backoff(first=0.05, maximum=1.0)
_CLOCK: Final = (
    SystemClock()
)  # calls and leases go by the machine's time, and so does the patience with their store

T = TypeVar("T")


async def patiently(action: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Return the action's result; a store that does not answer is asked again for so many seconds."""
    return await retry(action, on=StoreUnavailableError, backoff=BACKOFF, clock=_CLOCK, seconds=seconds)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a write that is not left half way: who is cancelled meanwhile hears of it afterwards."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
