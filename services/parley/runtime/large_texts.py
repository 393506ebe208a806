"""Work that goes through texts, done beside the event loop where they are large."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

__all__ = ["beside_loop"]

_LARGE: Final = 64 * 1024
"""Characters that are gone through in a millisecond or two."""
_A_TEXT: Final = 200
"""What it takes to go through one more text, in characters."""

T = TypeVar("T")


async def beside_loop(texts: Iterable[str], work: Callable[[], T]) -> T:
    """Return what work on these texts comes to; it is done in a thread where they are large, since the loop belongs to all callers."""
    is_large = sum(len(each) + _A_TEXT for each in texts) > _LARGE
    return await asyncio.to_thread(work) if is_large else work()
