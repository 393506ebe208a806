"""One SQLite file: a writer thread that commits in groups, and threads that read.

Every write waits for a disk flush, and a flush costs the same for one write as for a hundred. So the writes of one
turn of the event loop are handed over together, and all that are waiting when the writer thread is free go into one
transaction. If one fails, they are made again, each inside a savepoint of its own: a failed write undoes only itself. The callers get
their results only after the commit.
"""

import asyncio
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from sqlite3 import Connection
from typing import Any, TypeVar
from uuid import uuid4

from msgspec import Struct

from parley.runtime.private_files import make_folder, open_private
from parley.storage.ports import StorageError, StoreDamagedError, StoreUnavailableError
from parley.storage.sqlite.erasing import erase
from parley.storage.sqlite.readers import Readers

T = TypeVar("T")

RESTORING = ".restoring"
"""A folder in a data folder while databases are restored there. None of them is opened meanwhile."""
_APPLICATION_ID = 0x50524C59  # "PRLY", so that another program's file is recognized
_LOCK_WAIT = 5.0  # seconds to wait for a writer in another process
_LOCK_PAUSE = 0.01  # seconds between two attempts, if SQLite itself does not wait
_MAX_GROUP = 1000  # no more is taken from the queue once a transaction has as many writes
_ERASE_SECONDS = 2.0  # from a deletion to the erasure of all that was deleted meanwhile
_PLAIN = 1  # the version of a file without compressed records, which an earlier Parley opens
_COMPRESSED = 2
_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "{path} is locked by another process; try again when it has finished",
    sqlite3.SQLITE_LOCKED: "{path} is locked by another process; try again when it has finished",
    sqlite3.SQLITE_FULL: "the disk of {path} is full; free some room and try again",
    sqlite3.SQLITE_IOERR: "{path} could not be read or written ({error}); check its disk",
    sqlite3.SQLITE_CANTOPEN: "{path} could not be opened ({error}); check its folder and permissions",
    sqlite3.SQLITE_NOMEM: "{path} could not be used: out of memory",
}
_FULL_DISK_CODES = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
_FULL_BYTES = 128 * 1024  # less is too little for the files that SQLite makes next to its own
_DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class _Write(Struct, frozen=True):
    work: Callable[[Connection], Any]
    future: asyncio.Future[Any]
    erases: bool


_Outcome = tuple[_Write, Any, Exception | None]


class SqliteDatabase:
    """One SQLite file, used outside of the event loop. Created by `open_database`."""

    def __init__(self, path: Path, writer: Connection, connect: Callable[[Path], Connection]) -> None:
        self._path = path
        self._connect = connect
        self._loop = asyncio.get_running_loop()
        self._writer = writer
        self._queue: SimpleQueue[list[_Write] | None] = SimpleQueue()
        self._collected: list[_Write] = []
        self._handing_over: asyncio.Handle | None = None
        self._closing = False
        self._thread = threading.Thread(
            target=self._write_until_closed, name=f"writer of {path.name}", daemon=True
        )
        self._readers = Readers(f"reader of {path.name}", self._connect_reader, self._to_caller_error)
        # What a killed process deleted may still be in the file's WAL.
        self._erase_at = time.monotonic() + _ERASE_SECONDS if _wal_size(path) else None
        self._thread.start()

    async def write(self, work: Callable[[Connection], T], *, erases: bool = False) -> T:
        """Run the work in a transaction and return its result once that is durable. Writes are made in the order of these calls.

        If it `erases`, what it deleted is off the disk some seconds later. It is not known whether the work of a cancelled caller was done. An exception undoes only this work.
        """
        if self._closing:
            raise StoreUnavailableError(f"{self._path} is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._collected.append(_Write(work, future, erases))
        if self._handing_over is None:
            self._handing_over = self._loop.call_soon(self._hand_over)
        return await future

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run the work, which must not write, and return its result. It sees all earlier writes."""
        if self._closing:
            raise StoreUnavailableError(f"{self._path} is closed")
        return await self._readers.read(work)

    async def close(self) -> None:
        """Finish the writes that wait, then close the file."""
        self._closing = True
        self._hand_over()
        self._queue.put(None)
        await asyncio.to_thread(self._finish)

    def _hand_over(self) -> None:
        if self._handing_over is not None:
            self._handing_over.cancel()
            self._handing_over = None
        if self._collected:
            self._queue.put(self._collected)
            self._collected = []

    def _finish(self) -> None:
        self._thread.join()
        self._readers.finish()
        self._writer.close()

    def _connect_reader(self) -> Connection:
        connection = self._connect(self._path)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _write_until_closed(self) -> None:
        closed = False
        while not closed:
            group, closed = self._next_group()
            outcomes = self._commit(group) if group else []
            with suppress(RuntimeError):  # the loop is closed, and with it all callers
                self._loop.call_soon_threadsafe(_deliver, outcomes)
            if self._erase_at is None and any(each.erases for each in group):
                self._erase_at = time.monotonic() + _ERASE_SECONDS
            if self._erase_at is not None and (closed or time.monotonic() >= self._erase_at):
                self._erase_at = (
                    None if erase(self._writer, self._path) else time.monotonic() + _ERASE_SECONDS
                )

    def _next_group(self) -> tuple[list[_Write], bool]:
        """Wait for writes, at most until what was deleted is to be erased. Return them, and whether they are the last."""
        group: list[_Write] = []
        try:
            writes = self._queue.get(timeout=self._seconds_to_erasure())
        except Empty:
            return group, False
        while writes is not None:
            group += writes
            if len(group) >= _MAX_GROUP:
                return group, False
            try:
                writes = self._queue.get_nowait()
            except Empty:
                return group, False
        return group, True

    def _seconds_to_erasure(self) -> float | None:
        return None if self._erase_at is None else max(self._erase_at - time.monotonic(), 0.0)

    def _commit(self, group: Sequence[_Write]) -> list[_Outcome]:
        left = [write for write in group if not write.future.cancelled()]
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            outcomes = self._attempt_all(left) or [self._attempt(write) for write in left]
            self._writer.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - whatever it was, the callers must get it
            with suppress(sqlite3.Error):
                self._writer.execute("ROLLBACK")
            return [(write, None, self._to_caller_error(error)) for write in group]
        return outcomes

    def _attempt_all(self, group: Sequence[_Write]) -> list[_Outcome]:
        """Make writes without a savepoint for each, which would take twice as long. If one fails, nothing is done and nothing returned."""
        try:
            return [(write, write.work(self._writer), None) for write in group]
        except Exception:  # noqa: BLE001 - it fails again alone
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            self._writer.execute("BEGIN IMMEDIATE")
            return []

    def _attempt(self, write: _Write) -> _Outcome:
        self._writer.execute("SAVEPOINT one_write")
        try:
            result = write.work(self._writer)
        except Exception as error:
            if not self._writer.in_transaction:  # SQLite itself has undone the whole group
                raise
            self._writer.execute("ROLLBACK TO one_write")
            self._writer.execute("RELEASE one_write")
            return write, None, self._to_caller_error(error)
        self._writer.execute("RELEASE one_write")
        return write, result, None

    def _to_caller_error(self, error: Exception) -> Exception:
        return to_storage_error(error, self._path) if isinstance(error, sqlite3.Error) else error


@asynccontextmanager
async def open_database(path: Path, *, reading: bool = False) -> AsyncGenerator[SqliteDatabase, None]:
    """Open the file, creating it and its folder if they are missing; closing waits for pending writes.

    `reading`: open for reading only, so that it opens on a full disk too. No other process may write then.

    Raises:
        StorageError: the file is not one of ours, is damaged or comes from a newer Parley.
        StoreUnavailableError: the file cannot be opened now.
    """
    database = SqliteDatabase(path, *await asyncio.to_thread(_open_connections, path, reading=reading))
    try:
        yield database
    finally:
        await asyncio.shield(database.close())


def mark_compressed(connection: Connection) -> None:
    """Let a Parley that knows no compressed records refuse the file, from the commit of this write on."""
    if _query_number(connection, "PRAGMA user_version") < _COMPRESSED:
        connection.execute(f"PRAGMA user_version = {_COMPRESSED}")


def to_storage_error(error: sqlite3.Error, path: Path) -> StorageError:
    """Return the error for a caller of what SQLite reported."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the kind, the rest its detail
    if code in _FULL_DISK_CODES and _is_full(path):
        code = sqlite3.SQLITE_FULL
    if code in _UNAVAILABLE:
        return StoreUnavailableError(_UNAVAILABLE[code].format(path=path, error=error))
    if code in _DAMAGE_CODES:
        return StoreDamagedError(
            f"{path} is damaged or not a Parley store ({error}); move it away or restore a backup"
        )
    return StorageError(f"{path}: {error}")


def _deliver(outcomes: Sequence[_Outcome]) -> None:
    for write, result, error in outcomes:
        if write.future.done():  # cancelled meanwhile
            continue
        if error is None:
            write.future.set_result(result)
        else:
            write.future.set_exception(error)


def _is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _FULL_BYTES
    except OSError:
        return False


def _open_connections(path: Path, *, reading: bool) -> tuple[Connection, Callable[[Path], Connection]]:
    """Return a connection, and the function that opens more of its kind."""
    if path.with_name(RESTORING).exists():
        raise StorageError(
            f"{path.parent} was not restored to its end; run parley restore again, or remove its databases and"
            f" {path.with_name(RESTORING)} to start without data"
        )
    try:
        return _open_file(path), _connect
    except StoreUnavailableError:
        # SQLite needs two more files to write, and to read what a killed process left in one of them.
        if not reading or not path.exists() or _wal_size(path):
            raise
        return _connect_immutable(path), _connect_immutable


def _open_file(path: Path) -> Connection:
    try:
        make_folder(path.parent)
        _create_file(path)
        connection = _connect(path)
    except OSError as error:
        raise StorageError(f"{path} could not be created: {error.strerror}") from error
    except sqlite3.Error as error:
        raise to_storage_error(error, path) from error
    try:
        _require_ours(connection, path)
        _set_up(connection)
    except sqlite3.Error as error:
        connection.close()
        raise to_storage_error(error, path) from error
    except StorageError:
        connection.close()
        raise
    return connection


def _create_file(path: Path) -> None:
    """Create the file if it is missing, complete and under another name first, so that an empty file is known to be damaged."""
    if path.exists():
        if path.stat().st_size == 0:
            raise StoreDamagedError(f"{path} is empty; restore a backup, or remove the file to start again")
        return
    if _wal_size(path) and not path.exists():
        raise StoreDamagedError(
            f"{path} is missing, but {path.name}-wal exists; restore a backup, or remove that file too"
        )
    made = path.with_name(f".{path.name}-{uuid4().hex}")
    try:
        os.close(open_private(str(made), os.O_CREAT | os.O_EXCL))  # SQLite's files next to it get its mode
        with closing(_connect(made)) as connection:
            _set_up(connection)
        _link_to_path(made, path)
    finally:
        made.unlink(missing_ok=True)


def _link_to_path(made: Path, path: Path) -> None:
    try:
        os.link(made, path)
    except FileExistsError:  # another process was faster
        return
    except PermissionError:  # a file system without links
        made.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _set_up(connection: Connection) -> None:
    _switch_to_wal(connection)
    # FULL flushes the WAL at each commit: without it a power cut undoes acknowledged commits.
    connection.execute("PRAGMA synchronous = FULL")
    # Deleted data is overwritten, on every build of SQLite.
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    # Else nothing is written: the disk may be full.
    if _query_number(connection, "PRAGMA user_version") < _PLAIN:
        _mark_ours(connection)


def _connect(path: Path) -> Connection:
    return sqlite3.connect(path, timeout=_LOCK_WAIT, isolation_level=None, check_same_thread=False)


def _wal_size(path: Path) -> int:
    rest = path.with_name(f"{path.name}-wal")
    return rest.stat().st_size if rest.exists() else 0


def _connect_immutable(path: Path) -> Connection:
    where = f"{path.absolute().as_uri()}?immutable=1"
    return sqlite3.connect(where, uri=True, isolation_level=None, check_same_thread=False)


def _switch_to_wal(connection: Connection) -> None:
    """Let readers work concurrently with the writer. SQLite does not wait here for other processes that open the file."""
    try:
        _use_wal(connection)
    except sqlite3.OperationalError as error:
        if not _is_busy(error):
            raise
        _retry_to_use_wal(connection)


def _retry_to_use_wal(connection: Connection) -> None:
    # Hardly ever needed, and eleven modules to import.
    from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

    retrying = Retrying(
        retry=retry_if_exception(_is_busy),
        wait=wait_fixed(_LOCK_PAUSE),
        stop=stop_after_delay(_LOCK_WAIT),
        reraise=True,
    )
    retrying(_use_wal, connection)


def _use_wal(connection: Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL").close()  # one left open would forbid the next commit


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY


def _mark_ours(connection: Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")  # only one of several processes does
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {_PLAIN}")
    connection.execute("COMMIT")


def _require_ours(connection: Connection, path: Path) -> None:
    # The three values belong together, and another process may be creating the file
    connection.execute("BEGIN")
    version = _query_number(connection, "PRAGMA user_version")
    owner = _query_number(connection, "PRAGMA application_id")
    tables = _query_number(connection, "SELECT count(*) FROM sqlite_master")
    connection.execute("COMMIT")
    if owner != _APPLICATION_ID and (owner or version or tables):
        raise StorageError(f"{path} belongs to another program; choose another folder in PARLEY_STORE")
    if version > _COMPRESSED:
        raise StorageError(
            f"{path} was written by a newer Parley; upgrade, or choose another folder in PARLEY_STORE"
        )


def _query_number(connection: Connection, query: str) -> int:
    value: int = connection.execute(query).fetchone()[0]
    return value
