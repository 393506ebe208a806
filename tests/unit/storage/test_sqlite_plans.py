from functools import partial
from pathlib import Path
from sqlite3 import SQLITE_OK, SQLITE_SELECT, Connection

import pytest

from parley.storage.ports import Above, Below, Collection, Index, OneOf, Order, Record, StorageError
from parley.storage.sqlite import readers
from parley.storage.sqlite.database import open_database
from parley.storage.sqlite.documents import SqliteDocuments
from parley.storage.sqlite.log import SqliteLog

ITEMS = Collection("items", (Index(("tenant", "beat")), Index(("request",), unique=True), Index(("lent",))))


def explain(statement: str, connection: Connection) -> list[tuple[int, int, int, str]]:
    return connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()


async def test_nothing_grows_slow_with_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MOST", 1)
    statements: list[str] = []
    async with open_database(tmp_path / "some.db") as database:
        documents, log = SqliteDocuments(database, "some"), SqliteLog(database, "some")
        await log.prepare()
        await documents.prepare(ITEMS)
        for run in (database.write, database.read):
            await run(lambda connection: connection.set_trace_callback(statements.append))
        await log.append("x", Record(1, "a", (b"entry",)))
        await log.append("x", Record(1, "a", (b"entry",)))
        await log.read("x", after=1)
        await log.delete("x")
        await documents.insert(ITEMS, "k", {"tenant": "t"})
        await documents.get(ITEMS, "k")
        await documents.update(ITEMS, "k", {"beat": 1}, {"tenant": "t"})
        await documents.delete(ITEMS, "k", {"tenant": "t"})
        await documents.find(ITEMS, {"tenant": "t"}, order=[Order("beat")])
        await documents.find(ITEMS, {"tenant": "t", "beat": Below(5)}, order=[Order("beat", descending=True)])
        await documents.find(ITEMS, {"tenant": OneOf(("t", "u")), "beat": Above(5)})
        await documents.find(ITEMS, {"request": "r"}, fields=["beat"])
        await documents.find(ITEMS, {"lent": True})
        await documents.find(ITEMS, {"lent": None})
        await documents.find(ITEMS, {"key": OneOf(("k", "l"))})
        await documents.find(ITEMS, {"key": Above("k"), "lent": None}, order=[Order("key")])
        await database.read(lambda connection: connection.set_trace_callback(None))
        asked = [one for one in statements if one.startswith(("SELECT", "UPDATE", "DELETE", "INSERT"))]
        assert len(asked) >= 17
        for statement in asked:
            plan = await database.read(partial(explain, statement))
            assert not [step for *_, step in plan if step.startswith("SCAN some")], (statement, plan)


async def test_a_search_for_indexed_fields_reads_no_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MOST", 1)
    async with open_database(tmp_path / "some.db") as database:
        documents = SqliteDocuments(database, "some")
        await documents.prepare(ITEMS)
        for number in range(5):
            await documents.insert(ITEMS, f"k{number}", {"tenant": "t", "beat": number, "text": "long"})

        def refuse_to_read(connection: Connection) -> None:
            for function in ("json_extract", "json_type"):
                connection.create_function(function, -1, lambda *_: 1 / 0, deterministic=True)

        await database.read(refuse_to_read)
        latest_first = [Order("beat", descending=True)]
        found = await documents.find(
            ITEMS, {"tenant": "t", "beat": Above(2)}, order=latest_first, fields=["beat"]
        )
        assert [(each.key, each.fields) for each in found] == [("k4", {"beat": 4}), ("k3", {"beat": 3})]
        with pytest.raises(StorageError):
            await documents.find(ITEMS, {"tenant": "t"}, fields=["text"])


async def test_searches_for_lists_of_all_lengths_are_few_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MOST", 1)
    prepared: list[int] = []

    def note(action: int, *_: object) -> int:
        prepared.append(action)
        return SQLITE_OK

    async with open_database(tmp_path / "some.db") as database:
        documents = SqliteDocuments(database, "some")
        await documents.prepare(ITEMS)
        await documents.insert(ITEMS, "k0", {"tenant": "t"})
        await database.read(lambda connection: connection.set_authorizer(note))
        for length in range(1, 65):
            keys = tuple(f"k{number}" for number in range(length))
            assert len(await documents.find(ITEMS, {"key": OneOf(keys)})) == 1
    assert prepared.count(SQLITE_SELECT) == 7  # 1, 2, 4, … 64 keys
