"""How effects write: a document whole, whether it is there or not, and many at a time."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from parley.storage.ports import Collection, Documents, DuplicateError, Fields

T = TypeVar("T")


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
