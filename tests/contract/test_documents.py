import asyncio
from collections.abc import AsyncIterator
from types import MappingProxyType

import pytest

from parley.storage.json_text import to_json
from parley.storage.opening import Store
from parley.storage.ports import (
    Above,
    Below,
    Collection,
    Document,
    Documents,
    DuplicateError,
    Fields,
    HasAll,
    Index,
    OneOf,
    Order,
    StorageError,
    Value,
    Where,
)
from parley.storage.scan import scan
from tests.contract.conftest import OpenAgain

BOOKS = Collection(
    "books",
    (Index(("shelf", "number")), Index(("owner", "isbn"), unique=True), Index(("lent",)), Index(("title",))),
    private=("whole", "least", "pages", "nested", "long", "new"),
)


@pytest.fixture
async def books(store: Store) -> Documents:
    await store.documents.prepare(BOOKS)
    return store.documents


@pytest.fixture
async def other(open_again: OpenAgain) -> AsyncIterator[Documents]:
    async with open_again() as store:
        yield store.documents


async def keys(books: Documents, where: Where, *order: Order, limit: int = 1000) -> list[str]:
    return [found.key for found in await books.find(BOOKS, where, order=order, limit=limit)]


async def fill(books: Documents, **documents: Fields) -> None:
    for key, fields in documents.items():
        await books.insert(BOOKS, key, fields)


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


async def test_preparing_again_keeps_what_is_there(books: Documents, other: Documents) -> None:
    await books.insert(BOOKS, "a", {"title": "A"})
    await asyncio.gather(*(one.prepare(BOOKS, Collection("more")) for one in (books, other, books, other)))
    assert await other.get(BOOKS, "a") == Document("a", {"title": "A"})


async def test_an_index_may_be_added_later(books: Documents, other: Documents) -> None:
    await books.insert(BOOKS, "a", {"title": "A", "price": 3})
    wider = Collection(BOOKS.name, (*BOOKS.indexes, Index(("price",))))
    await other.prepare(wider)
    assert [found.key for found in await other.find(wider, {"price": 3})] == ["a"]


async def test_a_key_is_taken_once(books: Documents) -> None:
    await books.insert(BOOKS, "a", {"title": "first"})
    with pytest.raises(DuplicateError):
        await books.insert(BOOKS, "a", {"title": "second"})
    assert await books.get(BOOKS, "a") == Document("a", {"title": "first"})


async def test_of_many_that_insert_one_key_exactly_one_does(books: Documents, other: Documents) -> None:
    results = await asyncio.gather(
        *(to.insert(BOOKS, "a", {"number": n}) for n, to in enumerate([books, other] * 10)),
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


async def test_find_returns_what_holds_every_condition(books: Documents) -> None:
    await fill(
        books,
        a={"shelf": "x", "number": 1, "title": "A"},
        b={"shelf": "x", "number": 2, "title": "B"},
        c={"shelf": "y", "number": 1, "title": "A"},
        d={"title": None},
    )
    assert await keys(books, {}) == ["a", "b", "c", "d"]
    assert await keys(books, {"shelf": "x"}) == ["a", "b"]
    assert await keys(books, {"shelf": "x", "title": "A"}) == ["a"]
    assert await keys(books, {"shelf": "z"}) == []
    assert await keys(books, {"shelf": None}) == ["d"]
    assert await keys(books, {"title": None}) == ["d"]
    assert await keys(books, {"shelf": OneOf(("x", "y", "z")), "number": 1}) == ["a", "c"]
    assert await keys(books, {"shelf": OneOf(("y", None))}) == ["c", "d"]
    assert await keys(books, {"shelf": OneOf(())}) == []
    assert await keys(books, {"number": Above(1)}) == ["b"]
    assert await keys(books, {"number": Below(2)}) == ["a", "c"]
    assert await keys(books, {"number": Below(1.5), "shelf": "x"}) == ["a"]


async def test_count_returns_how_many_hold_every_condition(books: Documents) -> None:
    await fill(books, a={"shelf": "x", "number": 1}, b={"shelf": "x", "number": 2}, c={"shelf": "y"})
    assert await books.count(BOOKS, {}) == 3
    assert await books.count(BOOKS, {"shelf": "x"}) == 2
    assert await books.count(BOOKS, {"shelf": OneOf(("x", "y")), "number": Above(1)}) == 1
    assert await books.count(BOOKS, {"shelf": "z"}) == 0


async def test_a_condition_matches_values_of_its_own_type(books: Documents) -> None:
    await fill(
        books,
        absent={},
        none={"lent": None},
        true={"lent": True},
        false={"lent": False},
        zero={"lent": 0},
        one={"lent": 1},
        float={"lent": 1.0},
        text={"lent": "1"},
        empty={"lent": ""},
        true_text={"lent": "true"},
        mapping={"lent": {"a": 1}},
        mapping_text={"lent": '{"a":1}'},
    )
    assert await keys(books, {"lent": True}) == ["true"]
    assert await keys(books, {"lent": False}) == ["false"]
    assert await keys(books, {"lent": 1}) == ["float", "one"]
    assert await keys(books, {"lent": 1.0}) == ["float", "one"]
    assert await keys(books, {"lent": "1"}) == ["text"]
    assert await keys(books, {"lent": None}) == ["absent", "none"]
    assert await keys(books, {"lent": Below(5)}) == ["float", "one", "zero"]
    assert await keys(books, {"lent": Above(-1)}) == ["float", "one", "zero"]
    assert await keys(books, {"lent": '{"a":1}'}) == ["mapping_text"]
    assert await keys(books, {"lent": Below("z")}) == ["empty", "text", "true_text"]
    assert await keys(books, {"lent": Above("")}) == ["mapping_text", "text", "true_text"]
    assert await keys(books, {"lent": OneOf((True, "1", None))}) == ["absent", "none", "text", "true"]
    assert await keys(books, {"lent": OneOf(("1", '{"a":1}'))}) == ["mapping_text", "text"]


async def test_a_list_is_searched_for_texts_that_all_stand_in_it(books: Documents) -> None:
    shelves = Collection("shelves", (Index(("room", "tags", "number")),))
    await books.prepare(shelves)
    tags: dict[str, Value] = {
        "a": ["new", "größe=ü"],
        "b": ["new"],
        "c": [],
        "d": None,
        "e": "new-ish",
        "f": ["news", 1],
    }
    for number, (key, found) in enumerate(tags.items()):
        await books.insert(shelves, key, {"room": "hall", "tags": found, "number": number})

    async def tagged(*texts: str, **where: str) -> list[str]:
        condition: Where = {"tags": HasAll(texts), **where}
        order = (Order("number", descending=True),)
        return [each.key for each in await books.find(shelves, condition, order=order)]

    assert await tagged("new") == ["b", "a"]
    assert await tagged("new", "größe=ü", room="hall") == ["a"]
    assert await tagged("new", room="cellar") == []
    assert await tagged("ne") == await tagged("1") == []
    assert await books.update(shelves, "b", {"number": 9}, {"tags": HasAll(("new",))})
    assert not await books.update(shelves, "c", {"number": 9}, {"tags": HasAll(("new",))})


async def test_find_orders_by_fields_and_then_by_key(books: Documents) -> None:
    await fill(
        books,
        a={"shelf": "x", "number": 2},
        b={"shelf": "y", "number": 1},
        c={"shelf": "x", "number": 1},
        d={"shelf": "x", "number": 2},
        e={"shelf": "z"},
    )
    by_number, by_shelf = Order("number"), Order("shelf")
    assert await keys(books, {}, by_number) == ["e", "b", "c", "a", "d"]
    assert await keys(books, {}, Order("number", descending=True)) == ["d", "a", "c", "b", "e"]
    assert await keys(books, {}, by_shelf, Order("number", descending=True)) == ["d", "a", "c", "b", "e"]
    assert await keys(books, {"shelf": "x"}, by_number) == ["c", "a", "d"]
    assert await keys(books, {"shelf": "x"}, by_number, limit=2) == ["c", "a"]


async def test_a_search_returns_some_fields_alone_if_it_names_them(books: Documents) -> None:
    await fill(
        books,
        a={"shelf": "x", "number": 1, "lent": True, "pages": ["ü", {"of": 2.5}], "title": "A"},
        b={"shelf": "x", "number": 2, "lent": False, "pages": 7},
    )
    by_number = [Order("number", descending=True)]
    found = await books.find(BOOKS, {"shelf": "x"}, order=by_number, fields=["lent", "pages", "title"])
    assert found == [
        Document("b", {"lent": False, "pages": 7, "title": None}),
        Document("a", {"lent": True, "pages": ["ü", {"of": 2.5}], "title": "A"}),
    ]
    assert await books.find(BOOKS, {}, fields=["lent"]) == [
        Document("a", {"lent": True}),
        Document("b", {"lent": False}),
    ]
    with pytest.raises(ValueError):
        await books.find(BOOKS, {}, fields=["$where"])


async def test_indexed_fields_come_back_alone_as_they_were(books: Documents) -> None:
    values: list[Value] = [
        None,
        True,
        False,
        0,
        1,
        2**62,
        1.0,
        0.1,
        1e-7,
        "",
        "1",
        "ü[",
        "[1]",
        "{}",
        [1],
        {"a": None},
    ]
    for number, each in enumerate(values):
        await books.insert(BOOKS, f"{number:02}", {"lent": each, "pages": 7})
    found = [one.fields["lent"] for one in await books.find(BOOKS, {}, fields=["lent"])]
    assert to_json(found) == to_json(values)  # true is not 1


async def test_text_is_ordered_by_code_points(books: Documents) -> None:
    titles = ["", "B", "a", "ab", "b", "é", "\ufb01", "🦜"]
    for number, title in enumerate(reversed(titles)):
        await books.insert(BOOKS, str(number), {"title": title})
    found = await books.find(BOOKS, {}, order=[Order("title")])
    assert [one.fields["title"] for one in found] == titles == sorted(titles)


async def test_pages_can_be_read_by_the_last_value_seen(books: Documents) -> None:
    for number in range(25):
        await books.insert(BOOKS, f"k{number:02}", {"shelf": "x", "number": number})
    seen: list[str] = []
    last = -1
    while page := await books.find(BOOKS, {"number": Above(last)}, order=[Order("number")], limit=10):
        seen += [one.key for one in page]
        last = int(str(page[-1].fields["number"]))
    assert seen == [f"k{number:02}" for number in range(25)]


@pytest.mark.parametrize("page", [1, 2, 3, 4, 7])
async def test_a_scan_yields_each_document_once_in_the_order_of_its_field(
    books: Documents, page: int
) -> None:
    shelves = ("b", "a", "b", "b", "a", "b")
    for number, shelf in enumerate(shelves):
        await books.insert(BOOKS, f"{number}", {"title": f"t{9 - number}", "shelf": shelf})
    all_of_them = [each.key async for each in scan(books, BOOKS, "title", page=page)]
    assert all_of_them == ["5", "4", "3", "2", "1", "0"]
    assert [each.key async for each in scan(books, BOOKS, "title", {"shelf": "b"}, page=page)] == [
        "5",
        "3",
        "2",
        "0",
    ]


@pytest.mark.parametrize(
    ("where", "order"), [({"pages": 1}, ()), ({}, (Order("pages"),)), ({"$where": "1"}, ())]
)
async def test_a_search_without_an_index_is_refused(
    books: Documents, where: Where, order: tuple[Order, ...]
) -> None:
    with pytest.raises(ValueError):
        await books.find(BOOKS, where, order=order)


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


async def test_a_condition_on_a_private_field_is_refused(books: Documents) -> None:
    await books.insert(BOOKS, "a", {"long": "x"})
    with pytest.raises(ValueError, match="private fields: long"):
        await books.update(BOOKS, "a", {"number": 1}, {"long": "x"})
    with pytest.raises(ValueError, match="private fields: long"):
        await books.delete(BOOKS, "a", {"long": "x"})


def test_a_private_field_has_no_index() -> None:
    with pytest.raises(ValueError, match="index on private fields: a"):
        Collection("books", (Index(("b", "a")),), private=("a", "c"))


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


async def test_of_many_that_count_up_none_is_lost(books: Documents, other: Documents) -> None:
    await books.insert(BOOKS, "a", {"number": 0})

    async def count(to: Documents) -> None:
        while True:
            found = await to.get(BOOKS, "a")
            assert found is not None
            number = int(str(found.fields["number"]))
            if await to.update(BOOKS, "a", {"number": number + 1}, {"number": number}):
                return

    async with asyncio.timeout(20):
        await asyncio.gather(*(count(to) for to in [books, other] * 5))
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
    books: Documents, other: Documents
) -> None:
    for number in range(20):
        await books.insert(BOOKS, str(number), {"number": number})
        assert await other.get(BOOKS, str(number)) is not None
        await other.update(BOOKS, str(number), {"number": -1})
        assert [one.key for one in await books.find(BOOKS, {"number": number})] == []


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
