"""Many documents of a collection: all, however many there are, or those of some keys."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from types import MappingProxyType
from typing import Final

from parley.storage.ports import Above, Collection, Document, Documents, OneOf, Order, Where

_ALL: Final[Where] = MappingProxyType({})


async def scan(
    documents: Documents, collection: Collection, field: str, where: Where = _ALL, *, page: int = 1000
) -> AsyncGenerator[Document, None]:
    """Yield the documents that satisfy `where`, in the order of a field: a text that is not empty, and that no two have alike.

    They are read by `page` at a time. One that is written meanwhile may be among them or not. Raise StorageError.
    """
    after = ""
    while True:
        found = await documents.find(
            collection, {**where, field: Above(after)}, order=(Order(field),), limit=page
        )
        for each in found:
            yield each
        if len(found) < page:
            return
        after = found[-1].key if field == "key" else str(found[-1].fields[field])


async def find_by_keys(
    documents: Documents, collection: Collection, keys: Iterable[str], *, fields: Sequence[str] = ()
) -> Sequence[Document]:
    """Return those of the keys' documents that are there, by key; nothing is read if there is no key. `fields` is as in `Documents.find`."""
    if not (wanted := tuple(keys)):
        return []
    return await documents.find(collection, {"key": OneOf(wanted)}, limit=len(wanted), fields=fields)
