"""The first of what a server lists page by page."""

from collections.abc import AsyncIterator
from typing import TypeVar

T = TypeVar("T")


async def take_first(listed: AsyncIterator[T], limit: int) -> list[T]:
    """Return the first `limit` of what is listed; no page beyond them is asked for."""
    found: list[T] = []
    async for each in listed:
        found.append(each)
        if len(found) == limit:
            break
    return found
