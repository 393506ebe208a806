"""How effects write: a document whole, whether it is there or not, and many at a time."""

import asyncio
from collections.abc import Coroutine
from types import MappingProxyType
from typing import Any, Final

from parley.storage.ports import Collection, Documents, DuplicateError, Fields

_NONE: Final[Fields] = MappingProxyType({})


async def put_document(
    documents: Documents, collection: Collection, key: str, fields: Fields, *, if_new: Fields = _NONE
) -> None:
    """Insert a document, or write these fields of the one that is there. Safe to repeat. Raise StorageError.

    `if_new` are fields that a new document has too, and that one that is there keeps as they are.
    """
    try:
        await documents.insert(collection, key, {**fields, **if_new})
    except DuplicateError:
        await documents.update(collection, key, fields)


async def write_together(*writes: Coroutine[Any, Any, None]) -> None:
    """Run writes concurrently, so that a store can commit them together. Raise the first error once all have ended."""
    for each in await asyncio.gather(*writes, return_exceptions=True):
        if isinstance(each, BaseException):
            raise each
