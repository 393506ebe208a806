# ruff: noqa: ASYNC240 - files are small, and nothing else waits on the loop of a test
import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from sqlite3 import Connection
from types import SimpleNamespace
from typing import Any

import pytest

from parley.storage.ports import StorageError, StoreDamagedError, StoreUnavailableError
from parley.storage.sqlite import database as sqlite_database
from parley.storage.sqlite.database import SqliteDatabase, open_database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "some.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[SqliteDatabase]:
    async with open_database(path) as opened:
        await opened.write(lambda connection: connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)"))
        yield opened


def insert(number: int) -> "Work":
    return Work(number)


class Work:
    """Inserts a number; remembers nothing."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, connection: Connection) -> int:
        connection.execute("INSERT INTO t VALUES (?)", (self.number,))
        return self.number


async def numbers(database: SqliteDatabase) -> list[int]:
    return await database.read(
        lambda connection: [n for (n,) in connection.execute("SELECT n FROM t ORDER BY n")]
    )


class Held:
    """Keeps the writer thread busy until released, so that what is written meanwhile forms one group."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._begun, self._go_on = threading.Event(), threading.Event()
        self._task = asyncio.ensure_future(database.write(self._wait))

    def _wait(self, _: Connection) -> None:
        self._begun.set()
        assert self._go_on.wait(10)

    async def begun(self) -> None:
        assert await asyncio.to_thread(self._begun.wait, 10)

    async def release(self) -> None:
        self._go_on.set()
        await self._task


async def test_a_commit_is_on_the_disk_before_it_is_acknowledged(database: SqliteDatabase) -> None:
    (flushed,) = await database.write(lambda connection: connection.execute("PRAGMA synchronous").fetchone())
    assert flushed == 2, "FULL: nothing else outlives a power cut"


async def test_writes_that_wait_share_one_commit(database: SqliteDatabase) -> None:
    commits: list[str] = []
    await database.write(
        lambda connection: connection.set_trace_callback(
            lambda statement: commits.append(statement) if statement == "COMMIT" else None
        )
    )
    held = Held(database)
    await held.begun()
    writes = [asyncio.ensure_future(database.write(insert(n))) for n in range(64)]
    await asyncio.sleep(0)
    before = len(commits)
    await held.release()
    assert await asyncio.gather(*writes) == list(range(64))
    assert len(commits) - before == 2  # the held one's and theirs


async def test_a_write_that_fails_takes_nothing_with_it(database: SqliteDatabase) -> None:
    held = Held(database)
    await held.begun()

    def write_half(connection: Connection) -> None:
        connection.execute("INSERT INTO t VALUES (100)")
        raise KeyError("half way")

    writes = [
        asyncio.ensure_future(database.write(work))
        for work in (insert(1), insert(2), write_half, insert(1), insert(3))
    ]
    await asyncio.sleep(0)
    await held.release()
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert results[:2] == [1, 2]
    assert isinstance(results[2], KeyError)
    assert isinstance(results[3], StorageError)
    assert results[4] == 3
    assert await numbers(database) == [1, 2, 3]


async def test_a_cancelled_writer_does_not_disturb_the_others(database: SqliteDatabase) -> None:
    held = Held(database)
    await held.begun()
    writes = [asyncio.ensure_future(database.write(insert(n))) for n in range(10)]
    await asyncio.sleep(0)
    for write in writes[::2]:
        write.cancel()
    await held.release()
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert results[1::2] == [1, 3, 5, 7, 9]
    assert set(await numbers(database)) >= {1, 3, 5, 7, 9}
    assert await database.write(insert(50)) == 50


async def test_closing_finishes_what_was_asked_before(path: Path) -> None:
    async with open_database(path) as database:
        await database.write(lambda connection: connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)"))
        writes = [asyncio.ensure_future(database.write(insert(n))) for n in range(200)]
        await asyncio.sleep(0)
    assert await asyncio.gather(*writes) == list(range(200))
    with pytest.raises(StoreUnavailableError, match="closed"):
        await database.write(insert(1))
    with pytest.raises(StoreUnavailableError, match="closed"):
        await numbers(database)
    async with open_database(path) as again:
        assert len(await numbers(again)) == 200


async def test_a_locked_file_is_unavailable_and_later_works(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "_LOCK_WAIT", 0.05)
    async with open_database(path) as database:
        await database.write(lambda connection: connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match="locked"):
            await database.write(insert(1))
        assert await numbers(database) == []
        other.execute("ROLLBACK")
        other.close()
        assert await database.write(insert(1)) == 1


async def test_a_full_disk_is_unavailable_and_takes_nothing_from_what_stands(
    database: SqliteDatabase,
) -> None:
    await database.write(insert(1))
    pages = await database.write(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
    await database.write(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    with pytest.raises(StoreUnavailableError, match="full"):
        await database.write(
            lambda connection: connection.execute("CREATE TABLE big AS SELECT randomblob(100000)")
        )
    assert await numbers(database) == [1]
    await database.write(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchone())
    assert await database.write(insert(2)) == 2


async def test_readers_cannot_write(database: SqliteDatabase) -> None:
    with pytest.raises(StorageError):
        await database.read(insert(1))


async def test_a_file_that_is_not_a_database_is_named_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("These are my notes. " * 1000)
    with pytest.raises(StorageError, match=r"some\.db is damaged or not a Parley store"):
        async with open_database(path):
            pass
    assert path.read_text().startswith("These are my notes.")


async def test_another_programs_database_is_named_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(StorageError, match="PARLEY_STORE"):
        async with open_database(path):
            pass
    assert path.read_bytes() == content


async def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    async with open_database(path) as database:
        await database.write(lambda connection: connection.execute("SELECT 1"))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(StorageError, match="newer Parley"):
        async with open_database(path):
            pass


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="could not be created"):
        async with open_database(tmp_path / "file" / "some.db"):
            pass


async def test_a_damaged_page_is_an_error_and_not_an_answer(path: Path) -> None:
    async with open_database(path) as database:
        await database.write(lambda connection: connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)"))
        await asyncio.gather(*(database.write(insert(n)) for n in range(20_000)))
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(os.urandom(size // 4))
    async with open_database(path) as database:
        with pytest.raises(StorageError, match="damaged"):
            await numbers(database)


async def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    async def open_and_write(path: Path, number: int) -> None:
        async with open_database(path) as database:
            await database.write(
                lambda connection: connection.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER)")
            )
            await database.write(insert(number))

    for attempt in range(20):
        path = tmp_path / f"{attempt}.db"
        await asyncio.gather(*(open_and_write(path, number) for number in range(4)))
        async with open_database(path) as database:
            assert await numbers(database) == [0, 1, 2, 3]


def test_many_processes_may_open_a_new_file_at_once(path: Path) -> None:
    program = (
        "import asyncio, sys, pathlib\n"
        "from parley.storage.sqlite.database import open_database\n"
        "async def main():\n"
        "    async with open_database(pathlib.Path(sys.argv[1])): pass\n"
        "asyncio.run(main())\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program, str(path)]) for _ in range(4)]
    assert [process.wait(30) for process in processes] == [0, 0, 0, 0]


async def test_a_file_that_was_emptied_is_damage_and_not_a_new_store(path: Path) -> None:
    async with open_database(path):
        pass
    os.truncate(path, 0)
    with pytest.raises(StoreDamagedError, match=r"some\.db is empty; restore a backup, or remove the file"):
        async with open_database(path):
            pass
    assert path.stat().st_size == 0


async def test_a_file_that_is_gone_but_for_its_log_is_damage(path: Path) -> None:
    async with open_database(path):
        path.with_name("kept").write_bytes(path.with_name("some.db-wal").read_bytes() or b"rest")
    path.unlink()
    path.with_name("kept").rename(path.with_name("some.db-wal"))
    with pytest.raises(StoreDamagedError, match=r"is missing, but some\.db-wal exists"):
        async with open_database(path):
            pass


async def test_nothing_half_made_is_left_under_the_files_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_as_full(_: Connection) -> None:
        raise sqlite3.OperationalError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(sqlite_database, "_mark_ours", fail_as_full)
        with pytest.raises(StorageError):
            async with open_database(path):
                pass
    assert list(path.parent.iterdir()) == []
    async with open_database(path) as database:
        assert await database.read(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)


async def test_an_open_file_of_this_version_is_not_written_to(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_database(path):
        pass
    content = path.read_bytes()
    monkeypatch.setattr(sqlite_database, "_mark_ours", None)
    async with open_database(path):
        pass
    assert path.read_bytes() == content


async def test_pages_that_were_flipped_are_damage(path: Path) -> None:
    async with open_database(path) as database:
        await database.write(lambda connection: connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)"))
        await asyncio.gather(*(database.write(insert(n)) for n in range(5_000)))
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(3 * 4096)
        file.write(os.urandom(size - 3 * 4096))
    async with open_database(path) as database:
        with pytest.raises(StoreDamagedError, match="restore a backup"):
            await numbers(database)


@pytest.mark.parametrize(
    ("free", "reported", "error"),
    [
        (0, sqlite3.SQLITE_IOERR, "is full"),
        (2**30, sqlite3.SQLITE_IOERR, "could not be read or written"),
        (0, sqlite3.SQLITE_CORRUPT, "is damaged"),
    ],
)
def test_a_full_disk_is_named_if_it_can_be_the_cause_and_nothing_else_is_taken_for_one(
    path: Path, monkeypatch: pytest.MonkeyPatch, free: int, reported: int, error: str
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    problem = sqlite3.OperationalError("disk I/O error")
    problem.sqlite_errorcode = reported
    assert error in str(sqlite_database.to_storage_error(problem, path))


async def test_a_file_that_another_process_opens_just_now_is_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite itself does not wait for the other one while the file is switched to a log."""
    left = 3

    class BusyConnection(Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            nonlocal left
            if "journal_mode" in sql and left:
                left -= 1
                busy = sqlite3.OperationalError("database is locked")
                busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise busy
            return super().execute(sql, *parameters)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **b: connect(*a, **b, factory=BusyConnection))
    async with open_database(path) as database:
        (mode,) = await database.write(
            lambda connection: connection.execute("PRAGMA journal_mode").fetchone()
        )
    assert (mode, left) == ("wal", 0)
