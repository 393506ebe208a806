"""Any sequence of calls does to a collection what it does to a dictionary."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.storage.opening import Store
from parley.storage.ports import (
    Above,
    Below,
    Collection,
    Documents,
    DuplicateError,
    Fields,
    HasAll,
    Index,
    OneOf,
    Order,
    Where,
)
from tests.contract.conftest import rarely_on_a_server

_NAMES = (f"example{number}" for number in count())
_FIELDS = ("a", "b", "u")


def holds(fields: Fields, where: Where) -> bool:
    return all(_matches(fields.get(name), condition) for name, condition in where.items())


def _matches(value: Any, condition: Any) -> bool:
    match condition:
        case Below(bound):
            return _alike(value, bound) and value < bound
        case Above(bound):
            return _alike(value, bound) and value > bound
        case OneOf(values):
            return any(_matches(value, one) for one in values)
        case HasAll(texts):
            return isinstance(value, list) and set(texts) <= set(value)
        case None | bool():
            return value is condition
        case _:
            return _alike(value, condition) and bool(value == condition)


def _alike(value: Any, bound: Any) -> bool:
    if value is None or isinstance(value, bool | list):
        return False
    return isinstance(value, str) == isinstance(bound, str)


def _rank(value: Any) -> tuple[bool, Any]:
    return (False, 0) if value is None else (True, value)


@dataclass
class Model:
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)

    def insert(self, key: str, fields: Fields) -> type[Exception] | None:
        if key in self.documents or self._taken(key, fields):
            return DuplicateError
        self.documents[key] = dict(fields)
        return None

    def update(self, key: str, changes: Fields, where: Where) -> type[Exception] | bool:
        if key not in self.documents or not holds(self.documents[key], where):
            return False
        changed = {**self.documents[key], **changes}
        if self._taken(key, changed):
            return DuplicateError
        self.documents[key] = changed
        return True

    def delete(self, key: str, where: Where) -> bool:
        found = key in self.documents and holds(self.documents[key], where)
        if found:
            del self.documents[key]
        return found

    def find(self, where: Where, order: Order | None, limit: int) -> list[str]:
        found = sorted(key for key, fields in self.documents.items() if holds(fields, where))
        if order:
            found.sort(
                key=lambda key: (_rank(self.documents[key].get(order.field)), key), reverse=order.descending
            )
        return found[:limit]

    def _taken(self, key: str, fields: Fields) -> bool:
        value = fields.get("u")
        return value is not None and any(
            other.get("u") == value for name, other in self.documents.items() if name != key
        )


@dataclass(frozen=True)
class Insert:
    key: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Update:
    key: str
    changes: Mapping[str, Any]
    where: Mapping[str, Any]


@dataclass(frozen=True)
class Delete:
    key: str
    where: Mapping[str, Any]


@dataclass(frozen=True)
class Find:
    where: Mapping[str, Any]
    order: Order | None
    limit: int


Call = Insert | Update | Delete | Find

key = st.sampled_from(["k", "l", "m"])
number = st.sampled_from([-1, 0, 1, 2, 1.5])
text = st.sampled_from(["", "x", "y", "ü", "🦜"])
texts = st.lists(text, max_size=2)
has_all = st.builds(HasAll, st.lists(text, min_size=1, max_size=2).map(tuple))
# A field holds one type: `a` numbers, `b` truth values, `u` unique text, `t` lists of text, which are asked for nothing else.
fields = st.fixed_dictionaries(
    {},
    optional={"a": number | st.none(), "b": st.booleans() | st.none(), "u": text | st.none(), "t": texts},
)
scalars = st.dictionaries(
    st.sampled_from(_FIELDS),
    st.one_of(
        st.none(),
        st.booleans(),
        number,
        text,
        st.builds(Below, number | text),
        st.builds(Above, number | text),
        st.builds(
            OneOf, st.lists(st.none() | st.booleans() | st.sampled_from([0, 1, "x"]), max_size=2).map(tuple)
        ),
    ),
    max_size=2,
)
where = st.builds(
    lambda some, lists: {**some, **lists}, scalars, st.just({}) | st.fixed_dictionaries({"t": has_all})
)
order = st.builds(Order, st.sampled_from(_FIELDS), st.booleans()) | st.none()
calls = st.lists(
    st.one_of(
        st.builds(Insert, key, fields),
        st.builds(Update, key, fields.filter(bool), where),
        st.builds(Delete, key, where),
        st.builds(Find, where, order, st.integers(1, 3)),
    ),
    max_size=15,
)


async def outcome(documents: Documents, collection: Collection, call: Call) -> object:
    try:
        match call:
            case Insert():
                return await documents.insert(collection, call.key, call.fields)  # type: ignore[func-returns-value]
            case Update():
                return await documents.update(collection, call.key, call.changes, call.where)
            case Delete():
                return await documents.delete(collection, call.key, call.where)
            case Find():
                by = (call.order,) if call.order else ()
                found = await documents.find(collection, call.where, order=by, limit=call.limit)
                return [one.key for one in found]
    except DuplicateError:
        return DuplicateError


def expect(model: Model, call: Call) -> object:
    match call:
        case Insert():
            return model.insert(call.key, call.fields)
        case Update():
            return model.update(call.key, call.changes, call.where)
        case Delete():
            return model.delete(call.key, call.where)
        case Find():
            return model.find(call.where, call.order, call.limit)


async def compare_with_dictionary(store: Store, calls: list[Call]) -> None:
    collection = Collection(
        next(_NAMES), (Index(("a",)), Index(("b", "a")), Index(("b", "t", "a")), Index(("u",), unique=True))
    )
    await store.documents.prepare(collection)
    model = Model()
    for call in calls:
        assert await outcome(store.documents, collection, call) == expect(model, call), call
    found = await store.documents.find(collection, {})
    assert {one.key: one.fields for one in found} == model.documents


@rarely_on_a_server
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=calls)
async def test_a_collection_behaves_like_a_dictionary(store: Store, calls: list[Call]) -> None:
    await compare_with_dictionary(store, calls)


@pytest.mark.parametrize("store_url", ["mongodb"], indirect=True)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=calls)
async def test_so_does_one_on_a_server_that_others_wrote(store: Store, calls: list[Call]) -> None:
    """With fewer examples: it answers slowly, and what we send it is sent to one in memory too."""
    await compare_with_dictionary(store, calls)
