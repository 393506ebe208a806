"""Reads run in threads of their own: at once, each answered, and none kept from its answer by another."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from sqlite3 import Connection

import pytest

from parley.storage.sqlite.database import SqliteDatabase, open_database
from parley.storage.sqlite.readers import MOST


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    async with open_database(tmp_path / "some.db") as opened:
        yield opened


def thread(_: Connection) -> int:
    return threading.get_ident()


async def test_four_reads_run_at_once(database: SqliteDatabase) -> None:
    all_run = threading.Barrier(MOST)
    async with asyncio.timeout(30):
        await asyncio.gather(*(database.read(lambda _: all_run.wait(30)) for _ in range(MOST)))


async def test_more_reads_wait_for_their_turn_and_all_are_answered(database: SqliteDatabase) -> None:
    threads = await asyncio.gather(*(database.read(thread) for _ in range(10 * MOST)))
    assert len(set(threads)) <= MOST


async def test_one_thread_serves_reads_that_follow_each_other(database: SqliteDatabase) -> None:
    assert len({await database.read(thread) for _ in range(5)}) == 1


async def test_a_read_whose_caller_is_gone_keeps_no_other_from_its_answer(database: SqliteDatabase) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: Connection) -> None:
        begun.set()
        go_on.wait(30)

    given_up = asyncio.ensure_future(database.read(wait))
    await asyncio.to_thread(begun.wait, 30)
    given_up.cancel()
    assert await database.read(thread)
    go_on.set()
    assert len(await asyncio.gather(*(database.read(thread) for _ in range(MOST)))) == MOST


async def test_an_error_goes_to_its_caller_alone(database: SqliteDatabase) -> None:
    found = await asyncio.gather(
        database.read(lambda _: 1 // 0), database.read(thread), return_exceptions=True
    )
    assert isinstance(found[0], ZeroDivisionError)
    assert isinstance(found[1], int)


async def test_closing_finishes_the_reads_that_were_asked_for(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: Connection) -> str:
        begun.set()
        go_on.wait(30)
        return "read"

    async with open_database(tmp_path / "other.db") as database:
        reading = asyncio.ensure_future(database.read(wait))
        await asyncio.to_thread(begun.wait, 30)
        asyncio.get_running_loop().call_later(0.01, go_on.set)
    assert await reading == "read"


async def test_a_thread_that_cannot_be_started_fails_its_read_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with open_database(tmp_path / "other.db") as database:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="new thread"):
                await database.read(thread)
        assert len({await database.read(thread) for _ in range(5)}) == 1
