"""The Documents port on SQLite: a table for each collection of a service, a JSON text for each document, an index on searched fields."""
# ruff: noqa: S608 - names of services, collections and fields match [a-z][a-z0-9_]*; values are always parameters

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from sqlite3 import Connection
from typing import Any

from parley.storage.checks import (
    check_document,
    check_put,
    check_search,
    check_size,
    check_update,
    check_where,
)
from parley.storage.json_text import to_json
from parley.storage.ports import (
    Above,
    Below,
    Collection,
    Document,
    DuplicateError,
    Fields,
    HasAll,
    Index,
    Insert,
    OneOf,
    Order,
    Update,
    Where,
)
from parley.storage.sqlite.database import SqliteDatabase

_Clause = tuple[str, list[Any]]


class SqliteDocuments:
    """The documents of one service in a SQLite file."""

    def __init__(self, database: SqliteDatabase, service: str) -> None:
        self._database = database
        self._service = service

    async def prepare(self, *collections: Collection) -> None:
        """See `Documents.prepare`."""
        await self._database.write(lambda connection: _prepare(connection, self._service, collections))

    async def get(self, collection: Collection, key: str) -> Document | None:
        """See `Documents.get`."""
        rows = await self._rows(f"SELECT key, body FROM {self._table(collection)} WHERE key = ?", [key])
        return rows[0] if rows else None

    async def insert(self, collection: Collection, key: str, fields: Fields) -> None:
        """See `Documents.insert`."""
        await self._database.write(prepare_insert(self._service, Insert(collection, key, fields)))

    async def put(
        self, collection: Collection, documents: Mapping[str, Fields], if_new: Fields | None = None
    ) -> None:
        """See `Documents.put`."""
        check_put(collection, documents, if_new or {})
        table = self._table(collection)
        new = [(key, _json({**fields, **(if_new or {})})) for key, fields in documents.items()]
        if new:
            await self._database.write(lambda connection: _put(connection, table, collection, documents, new))

    async def find(
        self,
        collection: Collection,
        where: Where,
        *,
        order: Sequence[Order] = (),
        limit: int = 1000,
        fields: Sequence[str] = (),
    ) -> Sequence[Document]:
        """See `Documents.find`."""
        check_search(collection, where, order, limit, fields)
        condition, values = _conditions(where)
        content = _content(collection, fields) if fields else "body"
        query = f"SELECT key, {content} AS content FROM {self._table(collection)} WHERE {condition} ORDER BY {_ordering(order)} LIMIT ?"
        if fields:
            return await self._database.read(
                lambda connection: _read_fields(connection, query, [*values, limit], fields)
            )
        return await self._rows(query, [*values, limit])

    async def count(self, collection: Collection, where: Where) -> int:
        """See `Documents.count`."""
        check_search(collection, where)
        condition, values = _conditions(where)
        statement = f"SELECT count(*) FROM {self._table(collection)} WHERE {condition}"
        return await self._database.read(
            lambda connection: int(connection.execute(statement, values).fetchone()[0])
        )

    async def update(
        self, collection: Collection, key: str, changes: Fields, where: Where | None = None
    ) -> bool:
        """See `Documents.update`."""
        update = Update(collection, key, changes, where or {})
        return await self._database.write(prepare_update(self._service, update))

    async def delete(self, collection: Collection, key: str, where: Where | None = None) -> bool:
        """See `Documents.delete`."""
        check_where(collection, where or {})
        condition, values = _conditions(where or {})
        statement = f"DELETE FROM {self._table(collection)} WHERE key = ? AND {condition}"
        return await self._database.write(
            lambda connection: connection.execute(statement, [key, *values]).rowcount == 1,
            erases=bool(collection.private),
        )

    def _table(self, collection: Collection) -> str:
        return _table(self._service, collection)

    async def _rows(self, query: str, values: Sequence[Any]) -> list[Document]:
        return await self._database.read(lambda connection: _read_rows(connection, query, values))


def prepare_insert(service: str, insert: Insert) -> Callable[[Connection], None]:
    """Return what makes an insert inside a write transaction. Raise as `Documents.insert`."""
    collection, key = insert.collection, insert.key
    check_document(collection, key, insert.fields)
    table, body = _table(service, collection), _json(insert.fields)
    return lambda connection: _insert(connection, table, collection, key, body)


def prepare_update(service: str, update: Update) -> Callable[[Connection], bool]:
    """Return what makes an update inside a write transaction, and returns whether there was one. Raise as `Documents.update`."""
    check_update(update)
    table = _table(service, update.collection)
    return lambda connection: _update(
        connection, table, update.collection, update.key, update.changes, update.where
    )


def _read_rows(connection: Connection, query: str, values: Sequence[Any]) -> list[Document]:
    return [Document(key, json.loads(content)) for key, content in connection.execute(query, values)]


def _read_fields(
    connection: Connection, query: str, values: Sequence[Any], fields: Sequence[str]
) -> list[Document]:
    """Return documents with the fields that a query makes a list of.

    All come as one text, since a thread has to get the interpreter's lock again for each row that it reads. They are in the order of the
    query: SQLite joins rows as they come.
    """
    (text,) = connection.execute(f"SELECT group_concat(content, ',') FROM ({query})", values).fetchone()
    start = 0 if "key" in fields else 1
    names = ("key", *_without_key(fields))[start:]
    # A row may have a value more than there are names.
    rows = json.loads(f"[{text or ''}]")
    return [Document(row[0], dict(zip(names, row[start:], strict=False))) for row in rows]


def _prepare(connection: Connection, service: str, collections: Sequence[Collection]) -> None:
    for collection in collections:
        table = _table(service, collection)
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {table} (key TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL)"
        )
        for index in collection.indexes:
            connection.execute(_index(service, collection, index))
        for index in collection.superseded:
            connection.execute(f"DROP INDEX IF EXISTS {_index_name(service, collection, index)}")


def _index(service: str, collection: Collection, index: Index) -> str:
    unique = "UNIQUE" if index.unique else ""
    name = _index_name(service, collection, index)
    columns = [_extract(field) for field in index.fields]
    if not index.unique:
        columns.append("key")  # so that an ordered search reads in index order
    return (
        f"CREATE {unique} INDEX IF NOT EXISTS {name} ON {_table(service, collection)} ({', '.join(columns)})"
    )


def _index_name(service: str, collection: Collection, index: Index) -> str:
    name = "__".join([service, collection.name, *index.fields, *(["unique"] if index.unique else [])])
    return f'"{name}"'


def _insert(connection: Connection, table: str, collection: Collection, key: str, body: str) -> None:
    try:
        connection.execute(f"INSERT INTO {table} (key, body) VALUES (?, ?)", (key, body))
    except sqlite3.IntegrityError as error:
        raise _duplicate(collection, key) from error


def _put(
    connection: Connection,
    table: str,
    collection: Collection,
    documents: Mapping[str, Fields],
    new: Sequence[tuple[str, str]],
) -> None:
    """Insert documents, by one statement as nearly all are new, or set these fields of those that are there."""
    inserted = connection.execute(
        f"INSERT INTO {table} (key, body) VALUES {', '.join(['(?, ?)'] * len(new))} ON CONFLICT (key) DO NOTHING",
        [value for row in new for value in row],
    )
    if inserted.rowcount < len(new):
        for key, fields in documents.items():
            _update(connection, table, collection, key, fields, {})


def _update(
    connection: Connection, table: str, collection: Collection, key: str, changes: Fields, where: Where
) -> bool:
    condition, values = _conditions(where)
    # SQLite sets them itself: to read all of a document here and to write it takes twice as long.
    paths = ", ".join(f"'$.{name}', json(?)" for name in changes)
    statement = (
        f"UPDATE {table} SET body = json_set(body, {paths}) WHERE key = ? AND {condition}"
        " RETURNING length(CAST(body AS BLOB))"
    )
    try:
        written = [to_json(each).decode() for each in changes.values()]
        sizes = connection.execute(statement, [*written, key, *values]).fetchall()
    except sqlite3.IntegrityError as error:
        raise _duplicate(collection, key) from error
    for (size,) in sizes:
        check_size(size, "a document")
    return bool(sizes)


def _duplicate(collection: Collection, key: str) -> DuplicateError:
    return DuplicateError(
        f"{collection.name} has a document with the key {key!r} or its unique values already"
    )


def _conditions(where: Where) -> _Clause:
    clauses = [_condition(field, condition) for field, condition in where.items()]
    return _join(clauses, " AND ", "1")


def _condition(field: str, condition: object) -> _Clause:
    match condition:
        case None:
            return f"{_extract(field)} IS NULL", []
        case str() | int() | float():
            return _equals(field, condition)
        case Below(bound):
            return _is_beyond(field, "<", bound)
        case Above(bound):
            return _is_beyond(field, ">", bound)
        case OneOf(values):
            return _one_of(field, values)
        case HasAll(texts):
            return _join([_list_contains(field, text) for text in texts], " AND ", "1")
        case _:
            raise ValueError(f"{field}: {condition!r} is not a condition")


def _one_of(field: str, values: Sequence[str | int | bool | None]) -> _Clause:
    texts = [each for each in values if isinstance(each, str)]
    if len(texts) < len(values):
        return _join([_condition(field, each) for each in values], " OR ", "0")
    asked = _lengthen(texts)
    one = f"{_extract(field)} IN ({', '.join('?' * len(asked))})"  # read faster than as many comparisons
    if any(map(_may_be_nested, texts)):
        one = f"({one} AND {_has_type(field, 'text')})"
    return one, asked


def _lengthen(texts: list[str]) -> list[str]:
    """Return texts with the last one again, up to a power of two of them: each connection keeps a statement for each length."""
    return texts + texts[-1:] * ((1 << (len(texts) - 1).bit_length()) - len(texts))


def _list_contains(field: str, text: str) -> _Clause:
    held = f"EXISTS (SELECT 1 FROM json_each(body, '$.{field}') AS held WHERE held.type = 'text' AND held.value = ?)"
    return f"(json_type(body, '$.{field}') = 'array' AND {held})", [text]


def _equals(field: str, value: str | float) -> _Clause:
    """Compare only values of the same type: to SQLite JSON's true is 1, and a list is the text of it.

    To look for a value's type takes the whole document, and so does not use an index alone: it is left out if the value has only one.
    """
    one = f"{_extract(field)} = ?"
    if field == "key" and not isinstance(value, str):
        return "0", []  # SQLite would make a text of the number, as its column is one of texts
    if isinstance(value, bool):
        one = f"({one} AND {_has_type(field, 'true' if value else 'false')})"
    elif isinstance(value, str) and _may_be_nested(value):
        one = f"({one} AND {_has_type(field, 'text')})"
    elif value in (0, 1):
        one = f"({one} AND {_has_type(field, 'integer', 'real')})"
    return one, [value]


def _is_beyond(field: str, operator: str, bound: str | float) -> _Clause:
    """Compare only values of the same type, as `_equals` does: to SQLite a number is below every text, too."""
    value = _extract(field)
    if isinstance(bound, str):
        alike = f"typeof({value}) = 'text'"
        is_sure, has_type = f"substr({value}, 1, 1) NOT IN ('[', '{{')", _has_type(field, "text")
    else:
        alike = f"typeof({value}) != 'text'"
        is_sure, has_type = f"{value} NOT IN (0, 1)", _has_type(field, "integer", "real")
    return f"({value} {operator} ? AND {alike} AND ({is_sure} OR {has_type}))", [bound]


def _may_be_nested(text: str) -> bool:
    """Return whether a text may be what SQLite makes of a list or a mapping."""
    return text.startswith(("[", "{"))


def _has_type(field: str, *types: str) -> str:
    if field == "key":
        return str(int("text" in types))
    return f"json_type(body, '$.{field}') IN ({', '.join(map(repr, types))})"


def _join(clauses: Sequence[_Clause], by: str, none: str) -> _Clause:
    if not clauses:
        return none, []
    return f"({by.join(text for text, _ in clauses)})", [value for _, values in clauses for value in values]


def _ordering(order: Sequence[Order]) -> str:
    columns = [f"{_extract(by.field)} {'DESC' if by.descending else 'ASC'}" for by in order]
    last = order[-1].descending if order else False
    return ", ".join([*columns, f"key {'DESC' if last else 'ASC'}"])


def _table(service: str, collection: Collection) -> str:
    return f'"{service}_documents_{collection.name}"'


def _content(collection: Collection, fields: Sequence[str]) -> str:
    """Return what selects a list of the key and the values of some fields."""
    others = _without_key(fields)
    if not others:
        return "json_array(key)"
    # The first one twice: of one path alone SQLite returns its own value, where true is 1.
    paths = ", ".join(f"'$.{each}'" for each in (*others, others[0]))
    read = f"'[' || json_quote(key) || ',' || substr(json_extract(body, {paths}), 2)"
    if not any(set(fields) <= {"key", *index.fields} for index in collection.indexes):
        return read
    # An index has these values: the document is read only if that changes them.
    plain = " AND ".join(map(_is_plain, others))
    return f"CASE WHEN {plain} THEN json_array(key, {', '.join(map(_extract, others))}) ELSE {read} END"


def _without_key(fields: Sequence[str]) -> list[str]:
    return [each for each in fields if each != "key"]


def _is_plain(field: str) -> str:
    """Return what is true if SQLite's own value of a field is that of the document: no truth value, list, mapping or rounded number."""
    value = _extract(field)
    return (
        f"CASE typeof({value}) WHEN 'text' THEN substr({value}, 1, 1) NOT IN ('[', '{{')"
        f" WHEN 'integer' THEN {value} NOT IN (0, 1) ELSE {value} IS NULL END"
    )


def _extract(field: str) -> str:
    return "key" if field == "key" else f"json_extract(body, '$.{field}')"


def _json(fields: Fields) -> str:
    body = to_json(fields)
    check_size(len(body), "a document")
    return body.decode()
