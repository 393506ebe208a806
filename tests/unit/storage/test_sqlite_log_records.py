"""What a log's record is in a SQLite file: large ones are compressed, and what comes back is what was written."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from parley.storage.ports import AppendConflictError, Record, StoreDamagedError
from parley.storage.sqlite.database import mark_compressed, open_database
from parley.storage.sqlite.log import SqliteLog, pack, unpack

TEXT = b"an argument of some length, made again and again; " * 40
NOISE = random.Random(1).randbytes(5000)


def frame(*entries: bytes) -> bytes:
    """Return the entries as a file of version 1 has them."""
    return b"".join(len(each).to_bytes(4, "big") + each for each in entries)


@contextmanager
def change(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


@pytest.mark.parametrize(
    "entries",
    [(b"",), (b"a", b"", b"b"), (TEXT,), (TEXT, b"", TEXT[:7]), (NOISE,), (NOISE, TEXT)],
    ids=["empty", "small", "large", "mixed", "noise", "noise and text"],
)
def test_the_same_entries_come_back(entries: tuple[bytes, ...]) -> None:
    assert unpack(pack(entries)) == unpack(frame(*entries)) == entries


def test_a_record_of_1_kib_takes_less_room_and_a_smaller_one_stays_as_it_is() -> None:
    at_floor, below = TEXT[:1020], TEXT[:1019]
    assert len(frame(at_floor)) == 1024
    assert len(pack((at_floor,))) < 256
    assert pack((below,)) == frame(below)
    assert unpack(pack((at_floor,))) == (at_floor,)


def test_a_record_that_would_not_become_smaller_stays_as_it_is() -> None:
    assert pack((NOISE,)) == frame(NOISE)


def test_no_changed_bit_leads_to_other_entries() -> None:
    packed = pack((TEXT,))
    for bit in range(len(packed) * 8):
        changed = bytearray(packed)
        changed[bit // 8] ^= 1 << bit % 8
        with suppress(ValueError):
            assert unpack(bytes(changed)) == (TEXT,)


@pytest.mark.parametrize("blob", [pack((TEXT,)), frame(TEXT)], ids=["compressed", "plain"])
def test_a_record_that_is_cut_off_is_refused(blob: bytes) -> None:
    for length in range(1, len(blob)):
        with pytest.raises(ValueError, match=r"end is missing|is cut off"):
            unpack(blob[:length])


async def test_a_damaged_record_is_named_and_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    async with open_database(path) as database:
        log = SqliteLog(database, "some")
        await log.prepare()
        for first in (1, 2):
            await log.append("deb-1", Record(first, str(first), (TEXT,)))
        packed = pack((TEXT,))
        with change(path) as connection:
            connection.execute(
                "UPDATE some_log SET entries = ? WHERE first = 1", (packed[:12] + bytes(20) + packed[32:],)
            )
        with pytest.raises(StoreDamagedError, match=r"record 1 of log deb-1 is damaged \(.+\); restore it"):
            await log.read("deb-1")
        assert await log.read("deb-1", after=1) == [Record(2, "2", (TEXT,))]


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return found


async def test_an_older_version_opens_a_file_until_a_record_in_it_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    async with open_database(path) as database:
        log = SqliteLog(database, "some")
        await log.prepare()
        with change(path) as connection:  # as that version writes a large one
            connection.execute("INSERT INTO some_log VALUES ('deb-1', 1, 2, 'a', ?)", (frame(TEXT, b"old"),))
        await log.append("deb-1", Record(3, "b", (NOISE, b"small")))
        with pytest.raises(AppendConflictError):
            await log.append("deb-1", Record(3, "c", (TEXT,)))
        assert version(path) == 1
        await log.append("deb-1", Record(5, "d", (TEXT,)))
        assert version(path) == 2
        assert [each.entries for each in await log.read("deb-1")] == [
            (TEXT, b"old"),
            (NOISE, b"small"),
            (TEXT,),
        ]


async def test_a_write_that_is_undone_leaves_the_version_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "some.db"

    def fail(connection: sqlite3.Connection) -> None:
        mark_compressed(connection)
        raise KeyError("half way")

    async with open_database(path) as database:
        with pytest.raises(KeyError):
            await database.write(fail)
        assert version(path) == 1
