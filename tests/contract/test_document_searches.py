"""Searches of documents: what is found, in which order, by pages, and with which fields."""

import pytest

from parley.storage.json_text import to_json
from parley.storage.ports import (
    Above,
    Below,
    Collection,
    Document,
    Documents,
    HasAll,
    Index,
    OneOf,
    Order,
    Value,
    Where,
)
from parley.storage.scan import scan
from tests.contract.books import BOOKS, fill, keys


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

    async def find_tagged(*texts: str, **where: str) -> list[str]:
        condition: Where = {"tags": HasAll(texts), **where}
        order = (Order("number", descending=True),)
        return [each.key for each in await books.find(shelves, condition, order=order)]

    assert await find_tagged("new") == ["b", "a"]
    assert await find_tagged("new", "größe=ü", room="hall") == ["a"]
    assert await find_tagged("new", room="cellar") == []
    assert await find_tagged("ne") == await find_tagged("1") == []
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


async def test_documents_are_searched_and_ordered_by_their_keys(books: Documents) -> None:
    await fill(books, **{each: {"shelf": shelf} for each, shelf in zip("abcd", "xyxx", strict=True)})
    assert await keys(books, {"key": OneOf(("d", "a", "z"))}) == ["a", "d"]
    assert await keys(books, {"key": Above("a"), "shelf": "x"}) == ["c", "d"]
    assert await keys(books, {"key": Below("b")}) == ["a"]
    assert await keys(books, {"key": "b"}) == ["b"]
    assert not await keys(books, {"key": None})
    assert await books.count(BOOKS, {"key": Below("c")}) == 2
    latest_first = [Order("shelf"), Order("key", descending=True)]
    found = await books.find(BOOKS, {}, order=latest_first, fields=("shelf", "key"))
    assert [each.fields for each in found] == [
        {"shelf": shelf, "key": key} for shelf, key in (("x", "d"), ("x", "c"), ("x", "a"), ("y", "b"))
    ]


@pytest.mark.parametrize("where", [{"key": each} for each in (2, 2.0, OneOf((2, None)), Below(3), Above(1))])
async def test_a_key_is_a_text_and_equals_no_number(books: Documents, where: Where) -> None:
    await fill(books, **{"2": {}})
    assert not await keys(books, where)


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
    by_key = [each.key async for each in scan(books, BOOKS, "key", {"shelf": "b"}, page=page)]
    assert by_key == ["0", "2", "3", "5"]


@pytest.mark.parametrize(
    ("where", "order"), [({"pages": 1}, ()), ({}, (Order("pages"),)), ({"$where": "1"}, ())]
)
async def test_a_search_without_an_index_is_refused(
    books: Documents, where: Where, order: tuple[Order, ...]
) -> None:
    with pytest.raises(ValueError):
        await books.find(BOOKS, where, order=order)


async def test_a_condition_on_a_private_field_is_refused(books: Documents) -> None:
    await books.insert(BOOKS, "a", {"long": "x"})
    with pytest.raises(ValueError, match="private fields: long"):
        await books.update(BOOKS, "a", {"number": 1}, {"long": "x"})
    with pytest.raises(ValueError, match="private fields: long"):
        await books.delete(BOOKS, "a", {"long": "x"})
