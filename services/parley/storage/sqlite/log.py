"""The Log port on SQLite.

A record's entries are one BLOB. Each entry stands after its length in 4 bytes, the most significant first. A BLOB of 1 KiB
or more is compressed by zstd if that makes it smaller. Its first byte tells: zstd's is not 0, that of a length is, since no
record has 16 MiB.
"""
# ruff: noqa: S608 - names of services match [a-z][a-z0-9_]*; values are always parameters

import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cached_property
from sqlite3 import Connection
from typing import TYPE_CHECKING, Final

from parley.storage.ports import (
    AppendConflictError,
    AppendGapError,
    Insert,
    Record,
    StoreDamagedError,
    Update,
)
from parley.storage.sqlite.database import SqliteDatabase, mark_compressed
from parley.storage.sqlite.documents import prepare_insert, prepare_update
from parley.storage.tails import PAGE, Tails

if TYPE_CHECKING:
    from zstandard import ZstdCompressor, ZstdDecompressor

_LENGTH_BYTES: Final = 4
_ZSTD_MARK: Final = b"\x28\xb5\x2f\xfd"
_LEVEL: Final = 1
_MIN_BYTES = 1024
_DELETED_AT_ONCE = 4 * 1024 * 1024  # bytes


class _Zstd(threading.local):
    """What a thread compresses and decompresses with: none of it serves two threads at once, and to make it takes longer than to use it."""

    @cached_property
    def compressor(self) -> "ZstdCompressor":
        from zstandard import ZstdCompressor  # only a large record needs it, and no start waits for it

        return ZstdCompressor(level=_LEVEL, write_checksum=True)

    @cached_property
    def decompressor(self) -> "ZstdDecompressor":
        from zstandard import ZstdDecompressor

        return ZstdDecompressor()


_zstd: Final = _Zstd()


class SqliteLog:
    """The append-only logs of one service in a SQLite file."""

    def __init__(self, database: SqliteDatabase, service: str, *, poll_interval: float = 0.5) -> None:
        """Use the table of a service. Followers get this process's appends at once, and another's within `poll_interval` seconds (`Tails`)."""
        self._database = database
        self._service = service
        self._table = f"{service}_log"
        self._tails = Tails(self._read_news, poll_interval)

    async def prepare(self) -> None:
        """Create the table if it is missing. Else nothing is written: the disk may be full."""
        if not await self._database.read(self._has_table):
            await self._database.write(lambda connection: _create(connection, self._table))

    def _has_table(self, connection: Connection) -> bool:
        return bool(connection.execute(f"PRAGMA table_info({self._table})").fetchone())

    async def append(
        self, log: str, record: Record, *, insert: Insert | None = None, update: Update | None = None
    ) -> None:
        """See `Log.append`."""
        inserting = None if insert is None else prepare_insert(self._service, insert)
        updating = None if update is None else prepare_update(self._service, update)

        def write(connection: Connection) -> None:
            if inserting is not None:
                inserting(connection)
            _append(connection, self._table, log, record)
            if updating is not None:
                updating(connection)

        await self._database.write(write)
        self._tails.offer(log, record, is_own=True)

    async def read(self, log: str, after: int = 0, limit: int = PAGE) -> Sequence[Record]:
        """See `Log.read`."""
        if limit < 1:
            raise ValueError(f"limit is {limit}; it must be at least 1")
        return await self._database.read(lambda connection: _read(connection, self._table, log, after, limit))

    async def _read_news(self, positions: Mapping[str, int]) -> Mapping[str, Sequence[Record]]:
        def read(connection: Connection) -> Mapping[str, Sequence[Record]]:
            news: dict[str, list[Record]] = {}
            left = PAGE
            for log, after in positions.items():
                news[log] = _read(connection, self._table, log, after, left)
                left -= len(news[log])
            return news

        return await self._database.read(read)

    def follow(self, log: str, after: int = 0) -> AsyncGenerator[Record, None]:
        """See `Log.follow`."""
        return self._tails.follow(log, after)

    async def delete(self, log: str) -> None:
        """See `Log.delete`."""
        while await self._database.write(
            lambda connection: _delete_some(connection, self._table, log), erases=True
        ):
            pass
        self._tails.forget(log)


def _create(connection: Connection, table: str) -> None:
    connection.execute(
        f"""CREATE TABLE IF NOT EXISTS {table} (
            log TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, append_id TEXT NOT NULL,
            entries BLOB NOT NULL, PRIMARY KEY (log, first)
        )"""
    )


def _read(connection: Connection, table: str, log: str, after: int, limit: int) -> list[Record]:
    # Records have no gaps, so that their first places are enough of an index: the record before the next place may reach it.
    start = f"coalesce((SELECT max(first) FROM {table} WHERE log = ? AND first <= ?), 0)"
    rows = connection.execute(
        f"""SELECT first, append_id, entries FROM {table}
            WHERE log = ? AND first >= {start} AND last > ? ORDER BY first LIMIT ?""",
        (log, log, after + 1, after, limit),
    )
    return [_to_record(log, first, append_id, blob) for first, append_id, blob in rows]


def _to_record(log: str, first: int, append_id: str, blob: bytes) -> Record:
    try:
        return Record(first, append_id, unpack(blob))
    except ValueError as error:
        raise StoreDamagedError(
            f"record {first} of log {log} is damaged ({error}); restore it from a backup"
        ) from None


def _append(connection: Connection, table: str, log: str, record: Record) -> None:
    """Append inside a write transaction, in which earlier reads still hold at the write."""
    blob = pack(record.entries)
    end = f"coalesce((SELECT last FROM {table} WHERE log = ? ORDER BY first DESC LIMIT 1), 0)"
    inserted = connection.execute(
        f"INSERT INTO {table} (log, first, last, append_id, entries) SELECT ?, ?, ?, ?, ? WHERE {end} = ?",
        (log, record.first, record.last, record.append_id, blob, log, record.first - 1),
    )
    if inserted.rowcount:
        if blob.startswith(_ZSTD_MARK):
            mark_compressed(connection)
        return
    (last,) = connection.execute(f"SELECT {end}", (log,)).fetchone()
    if record.first > last:
        raise AppendGapError(f"log {log} ends at {last}; a record at {record.first} would leave a gap")
    _require_the_same(connection, table, log, record)


def _delete_some(connection: Connection, table: str, log: str) -> bool:
    """Delete the next records of a log, so that other writes get their turn between them; return whether there were any."""
    sizes = connection.execute(
        f"SELECT first, length(entries) FROM {table} WHERE log = ? ORDER BY first", (log,)
    )
    last, size = 0, 0
    for first, length in sizes:
        last, size = first, size + length
        if size >= _DELETED_AT_ONCE:
            break
    sizes.close()
    connection.execute(f"DELETE FROM {table} WHERE log = ? AND first <= ?", (log, last))
    return last > 0


def _require_the_same(connection: Connection, table: str, log: str, record: Record) -> None:
    there = connection.execute(
        f"SELECT append_id FROM {table} WHERE log = ? AND first = ?", (log, record.first)
    ).fetchone()
    if there != (record.append_id,):
        raise AppendConflictError(f"log {log} has another record at {record.first}")


def pack(entries: Sequence[bytes]) -> bytes:
    """Return the BLOB of a record's entries."""
    framed = b"".join(part for each in entries for part in (len(each).to_bytes(_LENGTH_BYTES, "big"), each))
    if len(framed) < _MIN_BYTES:
        return framed
    packed = _zstd.compressor.compress(framed)
    return packed if len(packed) < len(framed) else framed


def unpack(blob: bytes) -> tuple[bytes, ...]:
    """Return the entries of a BLOB. Raise ValueError if it is damaged, as far as that shows."""
    framed = _decompress(blob) if blob.startswith(_ZSTD_MARK) else blob
    entries, end = [], 0
    while end < len(framed):
        begin = end + _LENGTH_BYTES
        end = begin + int.from_bytes(framed[end:begin], "big")
        entries.append(framed[begin:end])
    if end != len(framed):
        raise ValueError("its last entry is cut off")
    return tuple(entries)


def _decompress(blob: bytes) -> bytes:
    from zstandard import ZstdError

    # Unlike `decompress`, it makes no room by the size that a damaged BLOB states.
    reading = _zstd.decompressor.decompressobj()
    try:
        framed = reading.decompress(blob)
    except ZstdError as error:
        raise ValueError(str(error)) from error
    if not reading.eof:
        raise ValueError("its end is missing")
    return framed
