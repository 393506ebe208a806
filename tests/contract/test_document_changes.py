"""Changes of documents: put, update and delete, each only where its condition holds, and of many at once none is lost."""

import asyncio

import pytest

from parley.storage.ports import (
    Above,
    Below,
    Collection,
    Document,
    Documents,
    Fields,
    Index,
)
from tests.contract.books import BOOKS, keys


async def test_put_inserts_documents_and_sets_fields_of_those_that_are_there(books: Documents) -> None:
    shelves = Collection("shelves", (Index(("room",)),), private=("owner",))
    await books.prepare(shelves)
    await books.put(shelves, {})
    await books.insert(shelves, "b", {"room": "hall", "owner": "Ada", "count": 7})
    await books.put(
        shelves,
        {"a": {"room": "attic", "owner": "Bo"}, "b": {"room": "cellar", "owner": None}},
        {"count": 0, "full": True},
    )
    assert list(await books.find(shelves, {})) == [
        Document("a", {"room": "attic", "owner": "Bo", "count": 0, "full": True}),
        Document("b", {"room": "cellar", "owner": None, "count": 7}),
    ]
    await books.put(shelves, {key: {"room": "attic"} for key in ("a", "b", "c")})
    assert [each.key for each in await books.find(shelves, {"room": "attic"})] == ["a", "b", "c"]
    refused: list[dict[str, Fields]] = [{"": {"room": "x"}}, {"d": {}}, {"d": {"A": 1}}]
    for given in refused:
        with pytest.raises(ValueError):
            await books.put(shelves, given)
    with pytest.raises(ValueError):
        await books.put(shelves, {"d": {"room": "x"}}, {"room": "y"})
    with pytest.raises(ValueError):
        await books.put(BOOKS, {"k": {"shelf": "x"}})
    assert await books.count(shelves, {}) == 3


async def test_update_sets_fields_and_leaves_the_others(books: Documents) -> None:
    await books.insert(BOOKS, "a", {"title": "A", "number": 1, "nested": {"x": 1}})
    assert await books.update(BOOKS, "a", {"number": 2, "nested": {"y": {"$inc": 1}}, "new": None})
    assert await books.get(BOOKS, "a") == Document(
        "a", {"title": "A", "number": 2, "nested": {"y": {"$inc": 1}}, "new": None}
    )
    assert await keys(books, {"number": 2}) == ["a"]
    assert await keys(books, {"number": 1}) == []


async def test_update_to_what_is_there_already_counts_as_done(books: Documents) -> None:
    await books.insert(BOOKS, "a", {"title": "A"})
    assert await books.update(BOOKS, "a", {"title": "A"})
    assert await books.update(BOOKS, "a", {"title": "A"}, {"title": "A"})


async def test_update_without_changes_is_refused(books: Documents) -> None:
    with pytest.raises(ValueError):
        await books.update(BOOKS, "a", {})


async def test_update_happens_only_where_its_condition_holds(books: Documents) -> None:
    await books.insert(BOOKS, "a", {"number": 1, "unindexed": 5})
    assert not await books.update(BOOKS, "b", {"number": 2})
    assert not await books.update(BOOKS, "a", {"number": 2}, {"number": 3})
    assert not await books.update(BOOKS, "a", {"number": 2}, {"lent": True})
    assert await books.get(BOOKS, "a") == Document("a", {"number": 1, "unindexed": 5})
    assert await books.update(
        BOOKS, "a", {"number": 2}, {"lent": None, "number": Below(2), "unindexed": Above(4)}
    )
    assert await books.get(BOOKS, "b") is None


async def test_of_many_that_count_up_none_is_lost(books: Documents, other_books: Documents) -> None:
    await books.insert(BOOKS, "a", {"number": 0})

    async def count(to: Documents) -> None:
        while True:
            found = await to.get(BOOKS, "a")
            assert found is not None
            number = int(str(found.fields["number"]))
            if await to.update(BOOKS, "a", {"number": number + 1}, {"number": number}):
                return

    async with asyncio.timeout(20):
        await asyncio.gather(*(count(to) for to in [books, other_books] * 5))
    assert await books.get(BOOKS, "a") == Document("a", {"number": 10})


async def test_delete_happens_only_where_its_condition_holds(books: Documents) -> None:
    await books.insert(BOOKS, "a", {"number": 1, "owner": "o", "isbn": "1"})
    assert not await books.delete(BOOKS, "b")
    assert not await books.delete(BOOKS, "a", {"number": 2})
    assert await books.get(BOOKS, "a") is not None
    assert await books.delete(BOOKS, "a", {"number": 1})
    assert not await books.delete(BOOKS, "a")
    assert await books.get(BOOKS, "a") is None
    await books.insert(BOOKS, "a", {"owner": "o", "isbn": "1"})


async def test_a_read_sees_what_another_process_was_told_is_written(
    books: Documents, other_books: Documents
) -> None:
    for number in range(20):
        await books.insert(BOOKS, str(number), {"number": number})
        assert await other_books.get(BOOKS, str(number)) is not None
        await other_books.update(BOOKS, str(number), {"number": -1})
        assert [one.key for one in await books.find(BOOKS, {"number": number})] == []
