"""What is deleted leaves the disk: the bytes of the files are searched, as whoever reads the disk would."""
# ruff: noqa: ASYNC240 - files are small, and nothing else waits on the loop of a test

import asyncio
import random
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from parley.storage.opening import Store, open_store
from parley.storage.ports import Collection, Record
from parley.storage.sqlite import erasing
from parley.storage.sqlite import log as sqlite_log
from parley.storage.sqlite.database import open_database
from tests.support.waiting import until

TEXTS = Collection("texts", private=("text",))
NOTES = Collection("notes")
SECRET = b"a secret plan"
LARGE = random.Random(1).randbytes(20_000) + SECRET * 20_000
"""Compressed it fills five pages, with the secret in it once: zstd leaves what it has not seen before as it is."""


@pytest.fixture(autouse=True, params=["compressed", "plain"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store large records as ever, and all of them as they are."""
    if request.param == "plain":
        monkeypatch.setattr(sqlite_log, "_MIN_BYTES", 2**30)
    else:
        assert SECRET in sqlite_log.pack((LARGE,))
        assert len(sqlite_log.pack((LARGE,))) < len(LARGE) / 10


def count_secrets(folder: Path) -> int:
    """How often the secret stands in the files."""
    return sum(each.read_bytes().count(SECRET) for each in folder.glob("parley.db*"))


async def wait_until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(until, condition)


async def write(store: Store) -> None:
    await store.documents.prepare(TEXTS, NOTES)
    await store.documents.insert(TEXTS, "one", {"text": SECRET.decode() * 400})
    await store.documents.insert(NOTES, "one", {"text": "kept"})
    await store.log.append("debate", Record(1, "a", (LARGE,)))
    await store.log.append("debate", Record(2, "b", (SECRET,)))
    await store.log.append("kept", Record(1, "a", (b"kept",)))


async def test_while_the_store_is_open_it_leaves_the_file_and_its_wal(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await write(store)
        assert count_secrets(tmp_path) > 400
        await store.documents.delete(TEXTS, "one")
        await store.log.delete("debate")
        await wait_until(lambda: count_secrets(tmp_path) == 0)
        assert (await store.log.read("kept"))[0].entries == (b"kept",)
        await store.log.append("kept", Record(2, "b", (b"more",)))


async def test_a_document_that_is_deleted_alone_leaves_it_too(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await write(store)
        await store.log.delete("debate")
        await wait_until(lambda: count_secrets(tmp_path) <= 400)
        await store.documents.delete(TEXTS, "one")
        await wait_until(lambda: count_secrets(tmp_path) == 0)


async def test_when_the_store_is_closed_at_once_nothing_is_left(tmp_path: Path) -> None:
    with ExitStack() as others:  # SQLite itself empties the WAL only when the last process closes the file
        async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
            await write(store)
            other = others.enter_context(closing(sqlite3.connect(tmp_path / "parley.db")))
            other.execute("SELECT count(*) FROM orchestrator_log").fetchone()
            await store.documents.delete(TEXTS, "one")
            await store.log.delete("debate")
        assert count_secrets(tmp_path) == 0


async def test_what_a_killed_process_deleted_leaves_the_disk_when_the_store_is_opened_again(
    tmp_path: Path,
) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await write(store)
        await store.log.delete("debate")
        await store.documents.delete(TEXTS, "one")
        for each in tmp_path.glob("parley.db*"):
            (killed / each.name).write_bytes(each.read_bytes())
    assert count_secrets(killed)
    (killed / "parley.db-shm").unlink()
    async with open_store(f"sqlite:///{killed}", "orchestrator"):
        await wait_until(lambda: count_secrets(killed) == 0)


async def test_a_reader_in_another_process_is_waited_for(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await write(store)
        with closing(sqlite3.connect(tmp_path / "parley.db", isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM orchestrator_log").fetchone()
            await store.documents.delete(TEXTS, "one")
            await store.log.delete("debate")
            await store.log.append(
                "kept", Record(2, "b", (b"more",))
            )  # and nobody else waits for that reader
            assert count_secrets(tmp_path)
        await wait_until(lambda: count_secrets(tmp_path) == 0)


async def test_rows_that_were_moved_among_pages_leave_nothing_behind(tmp_path: Path) -> None:
    chosen = random.Random(1)
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        lengths = dict.fromkeys(range(60), 0)
        for _ in range(1500):
            debate = chosen.randrange(60)
            lengths[debate] += 1
            entry = (SECRET if debate < 50 else b"kept") * chosen.choice([1, 2, 10, 60, 300])
            await store.log.append(f"debate-{debate}", Record(lengths[debate], "a", (entry,)))
        for debate in range(50):
            await store.log.delete(f"debate-{debate}")
        await wait_until(lambda: count_secrets(tmp_path) == 0)


async def test_a_long_log_is_deleted_in_steps_between_which_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_log, "_DELETED_AT_ONCE", 1)
    steps: list[int] = []
    async with open_database(tmp_path / "some.db") as database:
        log = sqlite_log.SqliteLog(database, "some")
        await log.prepare()
        for number in range(1, 6):
            await log.append("debate", Record(number, "a", (SECRET,)))
        write = database.write

        async def count(*arguments: object, **more: object) -> object:
            steps.append(len(await log.read("debate")))
            return await write(*arguments, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(database, "write", count)
        await log.delete("debate")
        assert steps == [5, 4, 3, 2, 1, 0]


async def test_of_a_file_that_is_too_large_to_be_written_anew_the_wal_is_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "_VACUUM_BYTES", 0)
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await write(store)
        await store.documents.delete(TEXTS, "one")
        await store.log.delete("debate")
        await wait_until(lambda: (tmp_path / "parley.db-wal").stat().st_size == 0)
        assert count_secrets(tmp_path) == 0
