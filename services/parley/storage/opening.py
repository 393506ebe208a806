"""Open stores from the settings PARLEY_STORE, PARLEY_ENCRYPTION_… and PARLEY_VECTORS."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from parley.runtime.clock import SystemClock
from parley.runtime.errors import ConfigurationError
from parley.runtime.tasks import stop_task
from parley.storage.data_folder import DATABASE, STORING, in_use_message, sqlite_folder
from parley.storage.encryption.data_keys import DATA_KEYS, DataKeys, Rewrapping
from parley.storage.encryption.documents import EncryptedDocuments
from parley.storage.encryption.log import EncryptedLog
from parley.storage.encryption.wrapping import NO_KEYS, WrappingKeys
from parley.storage.folder_lock import FolderLock, read_address
from parley.storage.ports import Documents, KeyMissingError, Log, StorageError, Vectors
from parley.storage.sqlite.documents import SqliteDocuments
from parley.storage.sqlite.log import SqliteLog
from parley.storage.sqlite.shared import share_database

_PING_LOG = "no-such-log"
_VECTORS_HELP = "PARLEY_VECTORS must be edge:FOLDER or http://HOST:PORT (Qdrant's gRPC port, 6334 by default)"
_HANDOVER_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.1


class Store(Struct, frozen=True):
    """A service's own database, open.

    Attributes:
        documents: Its documents.
        log: Its logs.
        exclusive: Whether it is in a folder of this machine that one process should own (see `folder_lock`).
    """

    documents: Documents
    log: Log
    exclusive: bool

    async def ping(self) -> None:
        """Return if the store can be read now, else raise StorageError."""
        await self.log.read(_PING_LOG, limit=1)


@contextmanager
def lock_store(url: str, service: str, *, alone: bool = False) -> Iterator[None]:
    """Lock the store's folder, if it has one, for a service's process; other services' processes may share it.

    `alone`: no other process may run this service on the folder. It waits for one that is about to end.

    Raises:
        ConfigurationError: the URL names no store, the folder cannot be used, or another process holds it.
    """
    try:
        folder = sqlite_folder(url)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    with ExitStack() as held:
        if folder is not None:
            held.enter_context(
                _wait_for_lock(folder, "parley.lock", lambda: FolderLock.share(folder, service))
            )
            if alone:
                name = f"{service}.lock"
                held.enter_context(_wait_for_lock(folder, name, lambda: FolderLock.acquire(folder, name)))
        yield


def _wait_for_lock(folder: Path, name: str, attempt: Callable[[], FolderLock | None]) -> FolderLock:
    ends = time.monotonic() + _HANDOVER_SECONDS
    try:
        while (lock := attempt()) is None:
            address = read_address(folder)
            if address is not None or time.monotonic() > ends:
                raise ConfigurationError(in_use_message(folder, name))
            time.sleep(_POLL_SECONDS)
    except OSError as error:
        raise ConfigurationError(
            f"PARLEY_STORE: {folder}: cannot be used: {error.strerror or error}"
        ) from None
    return lock


@asynccontextmanager
async def open_store(
    url: str,
    database: str,
    *,
    wrapping: WrappingKeys = NO_KEYS,
    poll_interval: float = 0.5,
    reading: bool = False,
) -> AsyncGenerator[Store, None]:
    """Open the database of one service, creating it if it is missing.

    Args:
        url: `sqlite:///FOLDER` (the tables `database`_… of the file FOLDER/parley.db, which services in one process
            write in common commits) or a MongoDB URL (the database is PREFIX_`database`; PREFIX is the URL's own database, or `parley`).
        database: The service's name.
        wrapping: The operator's keys. With one, log entries and private fields are encrypted from now on.
        poll_interval: Seconds between two polls of a followed log, for appends without a notification.
        reading: Open for reading only: an embedded store opens on a full disk too, if no other process uses it.

    Raises:
        ValueError: the URL is not one of these; the message names PARLEY_STORE.
        KeyMissingError: it holds data under a key that `wrapping` does not have.
        StorageError: the database cannot be used as it is.
        StoreUnavailableError: it does not answer now.
    """
    async with _open_as_stored(url, database, poll_interval, reading=reading) as stored:
        keys = DataKeys(stored.documents, wrapping)
        documents = EncryptedDocuments(stored.documents, keys, SystemClock())
        log = EncryptedLog(stored.log, documents, keys)
        if not reading:  # one that is only read may lack the collection
            await stored.documents.prepare(DATA_KEYS)
            await keys.require_all()
            if stored.exclusive and not keys.is_on:
                # Nothing in it is sealed, and nobody seals anything meanwhile. The log still checks what is appended.
                yield Store(stored.documents, log, stored.exclusive)
                return
        yield Store(documents, log, stored.exclusive)


async def rewrap_data_keys(url: str, database: str, wrapping: WrappingKeys) -> Rewrapping:
    """Wrap the data keys of a service's database by the first of the operator's keys, without damaged ones.

    Raise as `open_store`.
    """
    async with _open_as_stored(url, database, 0.5, reading=False) as stored:
        await stored.documents.prepare(DATA_KEYS)
        keys = DataKeys(stored.documents, wrapping)
        await keys.require_all()
        return await keys.rewrap()


@asynccontextmanager
async def _open_as_stored(
    url: str, database: str, poll_interval: float, *, reading: bool
) -> AsyncGenerator[Store, None]:
    folder = sqlite_folder(url)
    opened = (
        _open_mongodb(url, database, poll_interval)
        if folder is None
        else _open_sqlite(folder, database, poll_interval, reading=reading)
    )
    async with opened as store:
        yield store


@contextmanager
def refuse_unusable_store() -> Iterator[None]:
    """Raise ConfigurationError, which names the setting, if the block cannot open a store or prepare its collections."""
    try:
        yield
    except (ValueError, KeyMissingError) as error:
        raise ConfigurationError(str(error)) from None
    except StorageError as error:
        raise ConfigurationError(f"PARLEY_STORE: {error}") from None


@asynccontextmanager
async def open_vectors(
    url: str, *, api_key: str | None = None, ca: Path | None = None
) -> AsyncGenerator[Vectors, None]:
    """Open a vector store.

    Args:
        url: `edge:FOLDER` (embedded, for one process at a time; relative to the working directory, `~` is home) or
            `http://HOST:PORT` or `https://HOST:PORT`, a Qdrant server's gRPC port.
        api_key: The Qdrant server's API key.
        ca: The file of the authority that signs its certificate; None: the authorities that gRPC trusts by default.

    Raises:
        ValueError: the URL is neither; the message names PARLEY_VECTORS.
        ConfigurationError: the authority's file cannot be used; the message names PARLEY_VECTORS_CA.
        StorageError: the folder cannot be used as it is.
    """
    if url.startswith("edge:"):
        folder = url.removeprefix("edge:")
        if not folder or "\0" in folder:
            raise ValueError(f"PARLEY_VECTORS names no folder in {url!r}; write edge:FOLDER")
        from parley.storage.qdrant.edge import open_edge

        async with open_edge(folder) as edge:
            yield edge
    elif url.startswith(("http://", "https://")):
        from parley.storage.qdrant.server import open_server

        async with open_server(url, api_key=api_key, ca=ca) as server:
            yield server
    else:
        raise ValueError(f"{_VECTORS_HELP}, not {url!r}")


@asynccontextmanager
async def _open_sqlite(
    folder: Path, database: str, poll_interval: float, *, reading: bool
) -> AsyncGenerator[Store, None]:
    file = folder / DATABASE
    earlier = [each for name in STORING if (each := folder / f"{name}.db").exists()]
    if earlier and not file.exists():
        raise StorageError(
            f"{earlier[0]} is of an earlier Parley, which had a file for each service; move those files away, or name another folder in PARLEY_STORE"
        )
    async with share_database(file, reading=reading) as opened:
        log = SqliteLog(opened, database, poll_interval=poll_interval)
        await log.prepare()
        yield Store(documents=SqliteDocuments(opened, database), log=log, exclusive=True)


@asynccontextmanager
async def _open_mongodb(url: str, database: str, poll_interval: float) -> AsyncGenerator[Store, None]:
    # PyMongo is an extra: one machine needs none.
    from parley.storage.mongodb.database import open_mongodb
    from parley.storage.mongodb.documents import MongodbDocuments
    from parley.storage.mongodb.log import MongodbLog

    async with open_mongodb(url, database) as opened:
        log = MongodbLog(opened, poll_interval=poll_interval)
        listening = asyncio.create_task(log.listen())
        try:
            yield Store(documents=MongodbDocuments(opened), log=log, exclusive=False)
        finally:
            await stop_task(listening)
