"""A collection of documents that the tests of their stores have in common."""

from parley.storage.ports import (
    Collection,
    Documents,
    Fields,
    Index,
    Order,
    Where,
)

BOOKS = Collection(
    "books",
    (Index(("shelf", "number")), Index(("owner", "isbn"), unique=True), Index(("lent",)), Index(("title",))),
    private=("whole", "least", "pages", "nested", "long", "new"),
)


async def keys(books: Documents, where: Where, *order: Order, limit: int = 1000) -> list[str]:
    return [found.key for found in await books.find(BOOKS, where, order=order, limit=limit)]


async def fill(books: Documents, **documents: Fields) -> None:
    for key, fields in documents.items():
        await books.insert(BOOKS, key, fields)
