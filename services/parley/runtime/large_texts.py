"""Work on texts, which runs in a thread if they are large, one piece of each tenant at a time."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from itertools import accumulate
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from parley.runtime.labels import labels

_LARGE_CHARACTERS: Final = 64 * 1024
"""Characters that take a millisecond or two."""
CHARACTERS_PER_TEXT: Final = 200
"""The cost of one more text, in characters."""

T = TypeVar("T")

_thread: Final = ThreadPoolExecutor(1, thread_name_prefix="large-texts")
"""One thread: each further one would take as much of the interpreter's time as the event loop."""
_locks: Final[WeakValueDictionary[tuple[int, str], asyncio.Lock]] = WeakValueDictionary()


async def in_thread_if_large(texts: Iterable[str] | int, work: Callable[[], T]) -> T:
    """Return the result of `work` on these texts, or on so many characters.

    It runs in a thread if they are large, since all callers share the event loop.
    """
    if isinstance(texts, int):
        is_large = texts > _LARGE_CHARACTERS
    else:
        sizes = accumulate(len(each) + CHARACTERS_PER_TEXT for each in texts)
        is_large = any(size > _LARGE_CHARACTERS for size in sizes)
    return await in_thread_per_tenant(work) if is_large else work()


async def in_thread_per_tenant(work: Callable[[], T]) -> T:
    """Return the result of `work`, run in a thread after the work of this tenant that came before.

    One piece of work runs at a time. Of each tenant only one waits for the thread, so that no tenant waits behind all work of another.
    """
    loop = asyncio.get_running_loop()
    key = id(loop), labels().get("tenant", "")
    async with _locks.setdefault(key, asyncio.Lock()):
        return await loop.run_in_executor(_thread, partial(copy_context().run, work))
