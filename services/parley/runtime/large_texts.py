"""Work that goes through texts, done beside the event loop where they are large, for one tenant after the other."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from itertools import accumulate
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from parley.runtime.labels import labels

__all__ = ["in_thread_if_large", "in_thread_per_tenant"]

_LARGE_CHARACTERS: Final = 64 * 1024
"""Characters that are gone through in a millisecond or two."""
_CHARACTERS_PER_TEXT: Final = 200
"""What it takes to go through one more text, in characters."""

T = TypeVar("T")

_thread: Final = ThreadPoolExecutor(1, thread_name_prefix="large-texts")
"""One, since each more would take as much of the interpreter's time as the loop has."""
_locks: Final[WeakValueDictionary[tuple[int, str], asyncio.Lock]] = WeakValueDictionary()


async def in_thread_if_large(texts: Iterable[str], work: Callable[[], T]) -> T:
    """Return what work on these texts comes to; it is done in a thread where they are large, since the loop belongs to all callers."""
    is_large = any(
        size > _LARGE_CHARACTERS for size in accumulate(len(each) + _CHARACTERS_PER_TEXT for each in texts)
    )
    return await in_thread_per_tenant(work) if is_large else work()


async def in_thread_per_tenant(work: Callable[[], T]) -> T:
    """Return what large work comes to, done in a thread once it is its turn.

    One piece of work is done at a time, and of each tenant one waits for that, so that none waits behind all that another has.
    """
    loop = asyncio.get_running_loop()
    key = id(loop), labels().get("tenant", "")
    async with _locks.setdefault(key, asyncio.Lock()):
        return await loop.run_in_executor(_thread, partial(copy_context().run, work))
