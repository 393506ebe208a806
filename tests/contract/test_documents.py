"""Documents: each comes back as it was, its key and unique values are taken once, and what no store keeps is refused."""

import asyncio
from types import MappingProxyType

import pytest

from parley.storage.opening import Store
from parley.storage.ports import (
    Collection,
    Document,
    Documents,
    DuplicateError,
    Fields,
    Index,
    StorageError,
)
from tests.contract.books import BOOKS, fill, keys


async def test_a_document_comes_back_as_it_was(books: Documents) -> None:
    fields: Fields = {
        "title": "ü🦜\u2028\n",
        "number": 2**63 - 1,
        "least": -(2**63),
        "price": 0.1,
        "whole": 3.0,
        "lent": False,
        "owner": None,
        "pages": [1, "two", None, [3.5], {}],
        "nested": {"a.b": {"$set": 1}, "": [], "$x": None},
        "long": "x" * 2**20,
    }
    await books.insert(BOOKS, "kéy/1", fields)
    assert await books.get(BOOKS, "kéy/1") == Document("kéy/1", fields)
    found = await books.get(BOOKS, "kéy/1")
    assert found is not None
    assert isinstance(found.fields["whole"], float)
    assert isinstance(found.fields["number"], int)
    assert found.fields["lent"] is False


async def test_any_mapping_and_sequence_can_be_stored(books: Documents) -> None:
    await books.insert(
        BOOKS, "a", MappingProxyType({"pages": (1, (2,)), "nested": MappingProxyType({"b": (3,)})})
    )
    assert await books.get(BOOKS, "a") == Document("a", {"pages": [1, [2]], "nested": {"b": [3]}})


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "a\0b"},
        {"title": "\ud800"},
        {"number": 2**63},
        {"price": float("nan")},
        {"price": float("inf")},
        {"nested": {"a\0": 1}},
        {"pages": [b"bytes"]},
        {"nested": {1: 1}},
        {"Title": 1},
        {"_id": 1},
        {"a.b": 1},
        {"$set": 1},
        {"isbn": 5},
    ],
)
async def test_what_no_store_keeps_is_refused(books: Documents, fields: Fields) -> None:
    with pytest.raises(ValueError):
        await books.insert(BOOKS, "a", fields)
    await books.insert(BOOKS, "a", {})
    with pytest.raises(ValueError):
        await books.update(BOOKS, "a", fields)
    assert await books.get(BOOKS, "a") == Document("a", {})


async def test_an_empty_key_is_refused(books: Documents) -> None:
    with pytest.raises(ValueError):
        await books.insert(BOOKS, "", {})


async def test_a_document_that_is_not_there_is_none(books: Documents) -> None:
    assert await books.get(BOOKS, "a") is None


async def test_preparing_again_keeps_what_is_there(books: Documents, other_books: Documents) -> None:
    await books.insert(BOOKS, "a", {"title": "A"})
    await asyncio.gather(
        *(one.prepare(BOOKS, Collection("more")) for one in (books, other_books, books, other_books))
    )
    assert await other_books.get(BOOKS, "a") == Document("a", {"title": "A"})


async def test_an_index_may_be_added_later(books: Documents, other_books: Documents) -> None:
    await books.insert(BOOKS, "a", {"title": "A", "price": 3})
    wider = Collection(BOOKS.name, (*BOOKS.indexes, Index(("price",))))
    await other_books.prepare(wider)
    assert [found.key for found in await other_books.find(wider, {"price": 3})] == ["a"]


async def test_a_superseded_index_is_dropped_once_and_by_every_process(
    books: Documents, other_books: Documents
) -> None:
    taken, never_there = Index(("isbn",), unique=True), Index(("owner", "number"))
    before = Collection("papers", (taken, Index(("title",))))
    after = Collection("papers", (Index(("title",)),), superseded=(taken, never_there))
    await books.prepare(before)
    await books.insert(before, "a", {"title": "A", "isbn": "1"})
    with pytest.raises(DuplicateError):
        await books.insert(before, "b", {"title": "B", "isbn": "1"})
    await asyncio.gather(*(one.prepare(after) for one in (books, other_books, books)))
    await books.insert(after, "b", {"title": "B", "isbn": "1"})
    assert [found.key for found in await books.find(after, {"title": "B"})] == ["b"]


async def test_a_key_is_taken_once(books: Documents) -> None:
    await books.insert(BOOKS, "a", {"title": "first"})
    with pytest.raises(DuplicateError):
        await books.insert(BOOKS, "a", {"title": "second"})
    assert await books.get(BOOKS, "a") == Document("a", {"title": "first"})


async def test_of_many_that_insert_one_key_exactly_one_does(books: Documents, other_books: Documents) -> None:
    results = await asyncio.gather(
        *(to.insert(BOOKS, "a", {"number": n}) for n, to in enumerate([books, other_books] * 10)),
        return_exceptions=True,
    )
    assert results.count(None) == 1
    assert sum(isinstance(result, DuplicateError) for result in results) == 19
    found = await books.get(BOOKS, "a")
    assert found is not None
    assert found.fields == {"number": results.index(None)}


async def test_unique_values_are_taken_once(books: Documents) -> None:
    await fill(
        books, a={"owner": "o", "isbn": "1"}, b={"owner": "o", "isbn": "2"}, c={"owner": "p", "isbn": "1"}
    )
    with pytest.raises(DuplicateError):
        await books.insert(BOOKS, "d", {"owner": "o", "isbn": "1"})
    with pytest.raises(DuplicateError):
        await books.update(BOOKS, "b", {"isbn": "1", "title": "changed"})
    assert await books.get(BOOKS, "d") is None
    assert await books.get(BOOKS, "b") == Document("b", {"owner": "o", "isbn": "2"})
    await books.delete(BOOKS, "a")
    assert await books.update(BOOKS, "b", {"isbn": "1"})


async def test_what_lacks_a_unique_field_is_not_compared(books: Documents) -> None:
    await fill(
        books,
        a={"owner": "o"},
        b={"owner": "o"},
        c={"owner": "o", "isbn": None},
        d={"owner": "o", "isbn": None},
    )
    await fill(books, e={}, f={"isbn": "1"}, g={"isbn": "1", "owner": None})
    assert await keys(books, {"owner": "o"}) == ["a", "b", "c", "d"]
    assert await keys(books, {"isbn": "1", "owner": None}) == ["f", "g"]


def test_a_private_field_has_no_index() -> None:
    with pytest.raises(ValueError, match="index on private fields: a"):
        Collection("books", (Index(("b", "a")),), private=("a", "c"))


async def test_collections_do_not_mix(store: Store) -> None:
    first, second = Collection("log"), Collection("migrations")
    await store.documents.prepare(first, second)
    await store.documents.insert(first, "a", {})
    assert await store.documents.get(second, "a") is None
    assert [one.key for one in await store.documents.find(first, {})] == ["a"]


@pytest.mark.parametrize("name", ["", "A", "a.b", "a b", "system.x", "$a", '"', "x" * 64])
def test_a_name_that_some_store_would_misread_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        Collection(name)
    with pytest.raises(ValueError):
        Index((name,))


async def test_errors_say_what_was_taken(books: Documents) -> None:
    await books.insert(BOOKS, "a", {})
    with pytest.raises(StorageError, match=r"books.*'a'"):
        await books.insert(BOOKS, "a", {})
