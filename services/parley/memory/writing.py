"""A document that is written whole, whether it is there or not."""

from types import MappingProxyType
from typing import Final

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
