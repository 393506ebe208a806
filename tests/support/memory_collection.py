"""Documents as MongoDB keeps them in a collection, as far as our adapter asks for them: searched, ordered, unique."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

Document: TypeAlias = dict[str, Any]

_DUPLICATE: Final = 11000
_BAD_VALUE: Final = 2
_INDEX_NOT_FOUND: Final = 27
_SET: Final = frozenset({"$set", "$setOnInsert"})
_NO_ORDER: Final = (0, 0)


class CommandError(Exception):
    """Why a command failed: MongoDB's code, and words."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class _Unique:
    """An index whose values are taken once; documents that `where` does not match are not compared."""

    fields: tuple[str, ...]
    where: Mapping[str, Any]
    taken: dict[tuple[object, ...], object] = field(default_factory=dict)

    def values(self, document: Document) -> tuple[object, ...] | None:
        if not _matches(document, self.where):
            return None
        return tuple(document.get(name) for name in self.fields)


class MemoryCollection:
    """One collection. An index leads a search by the value of its first field; the rest is looked through."""

    def __init__(self) -> None:
        self._documents: dict[object, Document] = {}
        self._unique: dict[str, _Unique] = {}
        self._leading: dict[str, defaultdict[object, dict[object, None]]] = {}

    def create_index(self, index: Document) -> None:
        """Create an index, as `createIndexes` describes it."""
        fields = tuple(index["key"])
        if index.get("unique"):
            unique = _Unique(fields, index.get("partialFilterExpression", {}))
            for key, document in self._documents.items():
                self._take(unique, key, document)
            self._unique[index["name"]] = unique
        if fields[0] not in self._leading:
            leading = self._leading[fields[0]] = defaultdict(dict)
            for key, document in self._documents.items():
                leading[_to_plain(document.get(fields[0]))][key] = None

    def drop_index(self, name: str) -> None:
        """Drop a unique index. Of any other, which only makes searches faster, it says that it is not there."""
        if self._unique.pop(name, None) is None:
            raise CommandError(_INDEX_NOT_FOUND, f"index not found with name [{name}]")

    def insert(self, document: Document) -> None:
        """Insert a document. Raise CommandError where its `_id`, or what else is unique, is taken."""
        if document["_id"] in self._documents:
            raise CommandError(_DUPLICATE, f"E11000 duplicate key: _id {document['_id']!r}")
        self._put(document["_id"], None, document)

    def find(
        self, where: Mapping[str, Any], order: Mapping[str, int], limit: int, names: Iterable[str]
    ) -> list[Document]:
        """Return documents in order; `names` are the fields beside `_id` that are wanted, none: all."""
        found = self._found(where)
        for name, direction in reversed(list(order.items())):
            found.sort(key=partial(_place, name), reverse=direction < 0)
        wanted = {"_id", *names}
        return [
            {name: document[name] for name in document if len(wanted) == 1 or name in wanted}
            for document in (found[:limit] if limit else found)
        ]

    def update(self, where: Mapping[str, Any], changes: Mapping[str, Any], *, upsert: bool) -> int:
        """Change the first document that matches, or insert one; return how many that were."""
        if changes.keys() - _SET:
            raise CommandError(_BAD_VALUE, f"unknown changes {sorted(changes)}")
        for document in self._found(where)[:1]:
            self._put(document["_id"], document, document | changes.get("$set", {}))
            return 1
        if not upsert:
            return 0
        new = {name: value for name, value in where.items() if not isinstance(value, dict)}
        self.insert(new | changes.get("$set", {}) | changes.get("$setOnInsert", {}))
        return 1

    def delete(self, where: Mapping[str, Any], *, limit: int) -> int:
        """Delete the documents that match, one or all (0); return how many these were."""
        found = self._found(where)[: limit or None]
        for document in found:
            self._remove(document)
        return len(found)

    def _found(self, where: Mapping[str, Any]) -> list[Document]:
        return [document for document in self._candidates(where) if _matches(document, where)]

    def _candidates(self, where: Mapping[str, Any]) -> Sequence[Document]:
        if "$or" in where:
            found = [document for each in where["$or"] for document in self._candidates(each)]
            return list({document["_id"]: document for document in found}.values())
        key = _equal(where, "_id")
        if key is not None:
            return [self._documents[key]] if key in self._documents else []
        for name, leading in self._leading.items():
            value = _equal(where, name)
            if isinstance(value, str):
                return [self._documents[each] for each in leading.get(value, ())]
        return list(self._documents.values())

    def _put(self, key: object, before: Document | None, document: Document) -> None:
        for unique in self._unique.values():
            values = unique.values(document)
            if values is not None and unique.taken.get(values, key) != key:
                raise CommandError(_DUPLICATE, f"E11000 duplicate key: {unique.fields} {values}")
        if before is not None:
            self._remove(before)
        self._documents[key] = document
        for unique in self._unique.values():
            self._take(unique, key, document)
        for name, leading in self._leading.items():
            leading[_to_plain(document.get(name))][key] = None

    def _take(self, unique: _Unique, key: object, document: Document) -> None:
        values = unique.values(document)
        if values is not None and unique.taken.setdefault(values, key) != key:
            raise CommandError(_DUPLICATE, f"E11000 duplicate key: {unique.fields} {values}")

    def _remove(self, document: Document) -> None:
        key = document["_id"]
        del self._documents[key]
        for unique in self._unique.values():
            values = unique.values(document)
            if values is not None:
                del unique.taken[values]
        for name, leading in self._leading.items():
            value = _to_plain(document.get(name))
            del leading[value][key]
            if not leading[value]:
                del leading[value]


def _to_plain(value: object) -> object:
    """Return a value that can lead: a text. All others stand together, and are looked through."""
    return value if isinstance(value, str) else None


def _equal(where: Mapping[str, Any], name: str) -> object:
    condition = where.get(name)
    if isinstance(condition, dict):
        return condition.get("$eq")
    return condition


def _rank(value: object) -> tuple[int, Any]:
    """Return where a value stands: nothing first, then numbers, then texts, then all others as they come."""
    match value:
        case bool():
            return (3, value)
        case int() | float():
            return (1, value)
        case str():
            return (2, value.encode())
        case _:
            return _NO_ORDER


def _place(name: str, document: Document) -> tuple[int, Any]:
    return _rank(document.get(name))


def _matches(document: Document, where: Mapping[str, Any]) -> bool:
    if "$or" in where:
        return any(_matches(document, each) for each in where["$or"])
    return all(_holds(document.get(name), condition) for name, condition in where.items())


def _holds(value: object, condition: object) -> bool:
    if not isinstance(condition, dict):
        condition = {"$eq": condition}
    try:
        return all(_OPERATORS[name](value, operand) for name, operand in condition.items())
    except KeyError as unknown:
        raise CommandError(_BAD_VALUE, f"unknown operator {unknown}") from None


def _are_same(value: object, operand: object) -> bool:
    if isinstance(value, list) and not isinstance(operand, list):
        return any(_are_same(each, operand) for each in value)
    return isinstance(value, bool) is isinstance(operand, bool) and value == operand


def _compare_by(compare: Callable[[Any, Any], bool]) -> Callable[[object, Any], bool]:
    def holds(value: object, operand: object) -> bool:
        mine, theirs = _rank(value), _rank(operand)
        return mine[0] == theirs[0] > 0 and compare(mine[1], theirs[1])

    return holds


_OPERATORS: Final[Mapping[str, Callable[[object, Any], bool]]] = {
    "$eq": _are_same,
    "$in": lambda value, operands: any(_are_same(value, each) for each in operands),
    "$all": lambda value, operands: all(_are_same(value, each) for each in operands),
    "$type": lambda value, name: _rank(value)[0] == {"number": 1, "string": 2}[name],
    "$lt": _compare_by(lambda mine, theirs: mine < theirs),
    "$gt": _compare_by(lambda mine, theirs: mine > theirs),
    "$gte": _compare_by(lambda mine, theirs: mine >= theirs),
}
