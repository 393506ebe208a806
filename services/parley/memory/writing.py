"""How effects write: a document whole, whether it is there or not, and many at a time."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar

from parley.storage.ports import Collection, Documents, DuplicateError, Fields

T = TypeVar("T")


class Write(Protocol):
    """What makes several writes: `write_together`, or one that waits for others first (`run_to_common_write`)."""

    async def __call__(self, *writes: Coroutine[Any, Any, T]) -> list[T]:
        """See `write_together`."""


async def put_document(documents: Documents, collection: Collection, key: str, fields: Fields) -> None:
    """Insert a document, or write these fields of the one that is there. Safe to repeat. Raise StorageError."""
    try:
        await documents.insert(collection, key, fields)
    except DuplicateError:
        await documents.update(collection, key, fields)


async def write_together(*writes: Coroutine[Any, Any, T]) -> list[T]:
    """Run writes concurrently, so that a store can commit them together. Return what they do; raise the first error once all have ended."""
    done: list[T] = []
    for each in await asyncio.gather(*writes, return_exceptions=True):
        if isinstance(each, BaseException):
            raise each
        done.append(each)
    return done


Work = Callable[[Write], Coroutine[Any, Any, None]]


async def run_to_common_write(*works: Work) -> None:
    """Run works concurrently, each of which gets the means for its first writes: these begin together, once every work has come to its own or ended.

    So a store can commit them together. Raise the first error once all works have ended.
    """
    common = _CommonWrite(len(works))
    await write_together(*(common.run(number, work) for number, work in enumerate(works)))


class _CommonWrite:
    """The first writes of several works, by their numbers."""

    def __init__(self, works: int) -> None:
        self._left = set(range(works))
        self._begin = asyncio.Event()

    async def run(self, number: int, work: Work) -> None:
        try:
            await work(partial(self._write, number))
        finally:
            self._come(number)

    async def _write(self, number: int, *writes: Coroutine[Any, Any, T]) -> list[T]:
        self._come(number)
        try:
            await self._begin.wait()
        except asyncio.CancelledError:
            for each in writes:
                each.close()
            raise
        return await write_together(*writes)

    def _come(self, number: int) -> None:
        self._left.discard(number)
        if not self._left:
            self._begin.set()
