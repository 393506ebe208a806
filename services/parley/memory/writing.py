"""How effects write: a document whole, whether it is there or not, and many at a time."""

import asyncio
from collections.abc import Callable, Coroutine
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
    coming, all_came = set(works), asyncio.Event()

    def arrive(work: Work) -> None:
        coming.discard(work)
        if not coming:
            all_came.set()

    async def run(work: Work) -> None:
        async def write(*writes: Coroutine[Any, Any, T]) -> list[T]:
            arrive(work)
            try:
                await all_came.wait()
            except asyncio.CancelledError:
                for unbegun in writes:
                    unbegun.close()
                raise
            return await write_together(*writes)

        try:
            await work(write)
        finally:
            arrive(work)

    await write_together(*map(run, works))
