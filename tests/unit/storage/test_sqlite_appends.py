"""On SQLite an append and the writes to documents that come with it are one transaction."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from parley.storage.ports import AppendConflictError, Collection, Insert, Record, Update
from parley.storage.sqlite.database import SqliteDatabase, open_database
from parley.storage.sqlite.documents import SqliteDocuments
from parley.storage.sqlite.log import SqliteLog

NOTES: Final = Collection("notes")
INSERT: Final = Insert(NOTES, "x", {"number": 1})
UPDATE: Final = Update(NOTES, "x", {"number": 2})


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    async with open_database(tmp_path / "some.db") as opened:
        await SqliteLog(opened, "some").prepare()
        await SqliteDocuments(opened, "some").prepare(NOTES)
        yield opened


async def fields_of(database: SqliteDatabase) -> Mapping[str, object] | None:
    found = await SqliteDocuments(database, "some").get(NOTES, "x")
    return None if found is None else found.fields


async def test_an_append_its_insert_and_its_update_are_one_commit(database: SqliteDatabase) -> None:
    commits: list[str] = []
    await database.write(
        lambda connection: connection.set_trace_callback(
            lambda statement: commits.append(statement) if statement == "COMMIT" else None
        )
    )
    before = len(commits)
    await SqliteLog(database, "some").append("x", Record(1, "a", (b"",)), insert=INSERT, update=UPDATE)
    assert len(commits) - before == 1
    assert await fields_of(database) == {"number": 2}


async def test_the_insert_of_an_append_that_lost_its_place_is_undone(database: SqliteDatabase) -> None:
    log = SqliteLog(database, "some")
    await log.append("x", Record(1, "winner", (b"",)))
    with pytest.raises(AppendConflictError):
        await log.append("x", Record(1, "loser", (b"",)), insert=INSERT, update=UPDATE)
    assert await fields_of(database) is None
