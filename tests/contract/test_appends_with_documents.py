"""An append with an insert before it and an update after it, in every store."""

import pytest

from parley.storage.opening import Store
from parley.storage.ports import (
    AppendConflictError,
    AppendGapError,
    Documents,
    DuplicateError,
    Fields,
    Insert,
    Record,
    Update,
    Where,
)
from tests.contract.books import BOOKS
from tests.contract.test_log import record

NAME = "x/1"


def insert(fields: Fields | None = None) -> Insert:
    return Insert(BOOKS, NAME, {"number": 1} if fields is None else fields)


def update(changes: Fields | None = None, where: Where | None = None) -> Update:
    return Update(BOOKS, NAME, {"number": 2} if changes is None else changes, where or {})


async def number_of(books: Documents, key: str = NAME) -> object:
    found = await books.get(BOOKS, key)
    return None if found is None else found.fields["number"]


async def records_of(store: Store) -> list[Record]:
    return list(await store.log.read(NAME))


async def test_an_update_follows_its_record(store: Store, books: Documents) -> None:
    await books.insert(BOOKS, NAME, {"number": 1, "title": "a"})
    await store.log.append(NAME, record(1), update=update(where={"number": 1}))
    assert await records_of(store) == [record(1)]
    found = await books.get(BOOKS, NAME)
    assert found is not None
    assert found.fields == {"number": 2, "title": "a"}


async def test_a_record_stays_if_the_condition_of_its_update_does_not_hold(
    store: Store, books: Documents
) -> None:
    await books.insert(BOOKS, NAME, {"number": 1})
    await store.log.append(NAME, record(1), update=update(where={"number": 5}))
    assert (await records_of(store), await number_of(books)) == ([record(1)], 1)


async def test_a_record_stays_if_there_is_no_document_to_update(store: Store, books: Documents) -> None:
    changes: Fields = {"number": 2, "whole": "private"}
    await store.log.append(NAME, record(1), update=update(changes))
    assert (await records_of(store), await number_of(books)) == ([record(1)], None)


async def test_no_update_follows_an_append_that_lost_its_place(store: Store, books: Documents) -> None:
    await books.insert(BOOKS, NAME, {"number": 1})
    await store.log.append(NAME, record(1, by="winner"))
    with pytest.raises(AppendConflictError):
        await store.log.append(NAME, record(1), update=update())
    with pytest.raises(AppendGapError):
        await store.log.append(NAME, record(3), update=update())
    assert (await records_of(store), await number_of(books)) == ([record(1, by="winner")], 1)


async def test_the_same_append_again_makes_its_update_again(store: Store, books: Documents) -> None:
    await books.insert(BOOKS, NAME, {"number": 1})
    await store.log.append(NAME, record(1))
    for _ in range(2):
        await store.log.append(NAME, record(1), update=update())
    assert (await records_of(store), await number_of(books)) == ([record(1)], 2)


async def test_an_insert_comes_before_its_record_and_the_update_of_it_after_that(
    store: Store, books: Documents
) -> None:
    given = insert({"number": 1, "whole": "private", "title": "a"})
    await store.log.append(
        NAME, record(1), insert=given, update=update({"number": 2, "least": "private too"}, {"number": 1})
    )
    found = await books.get(BOOKS, NAME)
    assert found is not None
    assert found.fields == {"number": 2, "whole": "private", "title": "a", "least": "private too"}
    assert await records_of(store) == [record(1)]


async def test_an_insert_that_fails_leaves_no_record_and_no_update(store: Store, books: Documents) -> None:
    owned: Fields = {"number": 7, "owner": "ada", "isbn": "1"}
    await books.insert(BOOKS, "other", owned)
    await books.insert(BOOKS, NAME, {"number": 1})
    with pytest.raises(DuplicateError):  # by its key
        await store.log.append(NAME, record(1), insert=insert(), update=update())
    await books.delete(BOOKS, NAME)
    with pytest.raises(DuplicateError):  # by the values of a unique index
        await store.log.append(
            NAME, record(1), insert=insert(owned), update=Update(BOOKS, "other", {"number": 2})
        )
    assert await records_of(store) == []
    assert (await number_of(books), await number_of(books, "other")) == (None, 7)


@pytest.mark.parametrize(
    ("inserted", "updated"),
    [
        (insert(), update({})),
        (insert(), update({"title": float("nan")})),
        (insert(), update(where={"whole": "private"})),
        (insert({"Number": 1}), update()),
    ],
)
async def test_what_no_store_takes_is_refused_before_anything_is_written(
    store: Store, books: Documents, inserted: Insert, updated: Update
) -> None:
    with pytest.raises(ValueError):
        await store.log.append(NAME, record(1), insert=inserted, update=updated)
    assert (await records_of(store), await number_of(books)) == ([], None)
