"""A document that is written whole, whether it is there or not."""

from parley.storage.ports import Collection, Documents, DuplicateError, Fields


async def put_document(documents: Documents, collection: Collection, key: str, fields: Fields) -> None:
    """Insert a document, or write these fields of the one that is there. Safe to repeat. Raise StorageError."""
    try:
        await documents.insert(collection, key, fields)
    except DuplicateError:
        await documents.update(collection, key, fields)
