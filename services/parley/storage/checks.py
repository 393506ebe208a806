"""Checks of what callers pass to a store, the same for every adapter."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from parley.storage.ports import (
    Above,
    Below,
    Collection,
    Fields,
    HasAll,
    Index,
    OneOf,
    Order,
    Record,
    Update,
    Where,
)

_INTEGER_BOUND = 2**63
_MAX_BYTES = 15_000_000
_Place: TypeAlias = "str | tuple[_Place, str | int]"
"""A field, or a place in it: a name or a position, and what is around. It becomes text only in a message."""


def check_key(key: str) -> None:
    """Raise ValueError unless the text can be a document's key or a log's name."""
    if not key:
        raise ValueError("a key must not be empty")
    _check_text(key, "the key")


def check_document(collection: Collection, key: str, fields: Fields) -> None:
    """Raise ValueError unless the collection can hold a document of this key and these fields."""
    check_key(key)
    check_changes(collection, fields)


def check_put(collection: Collection, documents: Mapping[str, Fields], if_new: Fields) -> None:
    """Raise ValueError unless the collection can hold these documents, whether they are there or not."""
    if any(index.unique for index in collection.indexes):
        raise ValueError(f"{collection.name} has a unique index; insert its documents one by one")
    check_changes(collection, if_new)
    for key, fields in documents.items():
        if not fields:
            raise ValueError(f"{collection.name} {key} has no field to set")
        if twice := fields.keys() & if_new.keys():
            raise ValueError(
                f"{collection.name} {key} has fields both to set and if new: {', '.join(sorted(twice))}"
            )
        check_document(collection, key, fields)


def check_changes(collection: Collection, fields: Fields) -> None:
    """Raise ValueError unless the fields can be set in a document of the collection."""
    for name in fields:
        _check_name(name)
    if not _is_plain(fields):
        for name, value in fields.items():
            _check_value(value, name)
    for name in {name for index in collection.indexes if index.unique for name in index.fields}:
        if not isinstance(fields.get(name), str | None):
            raise ValueError(f"{collection.name}.{name} is in a unique index and must be text or None")  # noqa: TRY004


def check_update(update: Update) -> None:
    """Raise ValueError unless the update names fields that its collection can hold, at least one, and a condition that it can have."""
    if not update.changes:
        raise ValueError("an update needs at least one field to change")
    check_changes(update.collection, update.changes)
    check_where(update.collection, update.where)


def check_where(collection: Collection, where: Where) -> None:
    """Raise ValueError unless every condition names a field that a document can have, and none a private one."""
    if named := where.keys() & set(collection.private):
        raise ValueError(f"{collection.name}: a condition names private fields: {', '.join(sorted(named))}")
    for name, condition in where.items():
        _check_name(name)
        for value in _values(condition):
            _check_value(value, name)


def _values(condition: object) -> Sequence[object]:
    match condition:
        case OneOf(values):
            return values
        case HasAll(texts):
            return texts
        case Below(bound) | Above(bound):
            return (bound,)
        case _:
            return (condition,)


def check_search(
    collection: Collection,
    where: Where,
    order: Iterable[Order] = (),
    limit: int = 1,
    fields: Iterable[str] = (),
) -> None:
    """Raise ValueError unless an index of the collection serves every field that is searched or ordered by, and `fields` may be names."""
    if limit < 1:
        raise ValueError(f"limit is {limit}; it must be at least 1")
    check_where(collection, where)
    for name in fields:
        _check_name(name)
    indexed = {"key", *(field for index in collection.indexes for field in index.fields)}
    if unknown := {*where, *(by.field for by in order)} - indexed:
        raise ValueError(f"{collection.name} has no index on {', '.join(sorted(unknown))}")


def check_vector(vector: Sequence[float], what: str) -> None:
    """Raise ValueError unless every number of a vector is finite: another number would break every search."""
    if not all(map(math.isfinite, vector)):
        raise ValueError(f"the vector of {what} holds a number that is not finite")


def check_append(log: str, record: Record) -> None:
    """Raise ValueError unless the record can be stored. It is checked once, before it is sealed, which makes it longer."""
    check_key(log)
    _check_text(record.append_id, "append_id")
    if not all(isinstance(entry, bytes) for entry in record.entries):
        raise ValueError(f"the record at {record.first} of log {log} holds an entry that is not bytes")
    check_size(sum(map(len, record.entries)), f"the record at {record.first} of log {log}")


def check_size(size: int, what: str) -> None:
    """Raise ValueError if `size` bytes are more than a store can hold."""
    if size > _MAX_BYTES:
        raise ValueError(f"{what} has {size} bytes; a store holds at most {_MAX_BYTES}")


@lru_cache(maxsize=1024)
def _check_name(name: str) -> None:
    """Raise ValueError unless a field may have the name."""
    Index((name,))


def _is_plain(value: object) -> bool:
    """Return whether a value and all in it are surely kept. Nearly all are, and to find that takes a third of checking one by one."""
    texts: list[str] = []
    left = [value]
    for each in left:  # it grows meanwhile
        kind = type(each)
        if kind is str:
            texts.append(each)  # type: ignore[arg-type]
        elif kind is dict:
            texts.extend(each)  # type: ignore[arg-type]
            left.extend(each.values())  # type: ignore[attr-defined]
        elif kind is list:
            left.extend(each)  # type: ignore[arg-type]
        elif kind is int or kind is float:
            if not -_INTEGER_BOUND <= each < _INTEGER_BOUND:  # type: ignore[operator] # so NaN, too
                return False
        elif kind is not bool and each is not None:
            return False
    try:
        joined = "".join(texts)
        return "\0" not in joined and (joined.isascii() or bool(joined.encode()))
    except (TypeError, UnicodeEncodeError):  # TypeError: a name is not text
        return False


def _check_value(value: object, where: _Place) -> None:
    """Check a value and all in it one by one."""
    match value:
        case str():
            _check_text(value, where)
        case Mapping():
            for name, inner in value.items():
                if not isinstance(name, str):
                    raise ValueError(f"{_path(where)} holds a name that is not text: {name!r}")  # noqa: TRY004
                _check_text(name, where)
                _check_value(inner, (where, name))
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            for position, inner in enumerate(value):
                _check_value(inner, (where, position))
        case _:
            _check_scalar(value, where)


def _check_scalar(value: object, where: _Place) -> None:
    match value:
        case None | bool():
            pass
        case int():
            if not -_INTEGER_BOUND <= value < _INTEGER_BOUND:
                raise ValueError(f"{_path(where)} holds an integer of more than 64 bits")
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{_path(where)} holds {value}, which is not a finite number")
        case _:
            raise ValueError(f"{_path(where)} holds a {type(value).__name__}, which a store does not keep")


def _check_text(text: str, where: _Place) -> None:
    if "\0" in text:
        raise ValueError(f"{_path(where)} contains a NUL character")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{_path(where)} is not valid Unicode: {error.reason} at {error.start}"
            ) from None


def _path(where: _Place) -> str:
    """Return a place as messages have it: `fields.votes[2]`."""
    if isinstance(where, str):
        return where
    around, step = where
    return f"{_path(around)}[{step}]" if isinstance(step, int) else f"{_path(around)}.{step}"
