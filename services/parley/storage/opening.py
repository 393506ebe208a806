"""From the settings PARLEY_STORE and PARLEY_VECTORS to stores that are open."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from parley.runtime.stopping import stop_task
from parley.storage.ports import Documents, Log, Vectors
from parley.storage.sqlite.database import open_database
from parley.storage.sqlite.documents import SqliteDocuments
from parley.storage.sqlite.log import SqliteLog

_SQLITE = "sqlite:///"
_NO_LOG = "no-such-log"
_MONGODB = ("mongodb://", "mongodb+srv://")
_VECTORS_HELP = "PARLEY_VECTORS must be edge:FOLDER or http://HOST:PORT (Qdrant's gRPC port, 6334 by default)"
_STORE_HELP = "PARLEY_STORE must be sqlite:///FOLDER or mongodb://HOST[:PORT][/PREFIX]"


@dataclass(frozen=True, slots=True)
class Store:
    """A service's own database, open.

    Attributes:
        documents: Its documents.
        log: Its logs.
        exclusive: Whether it lies in a folder of this machine that one process should own (see `folder`).
    """

    documents: Documents
    log: Log
    exclusive: bool

    async def answers(self) -> None:
        """Return if the store can be read now. Raises StorageError."""
        await self.log.read(_NO_LOG, limit=1)


def sqlite_folder(url: str) -> Path | None:
    """Return the data folder that the URL names, or None where the store is a server.

    `sqlite:///data` is relative to the working directory, `sqlite:////var/lib/parley` is absolute, `~` is home.

    Raises:
        ValueError: the URL is neither.
    """
    if url.startswith(_MONGODB):
        return None
    if not url.startswith(_SQLITE):
        raise ValueError(f"{_STORE_HELP}, not {_shown(url)}")
    path = unquote(url.removeprefix(_SQLITE))
    if not path or "\0" in path:
        raise ValueError(f"PARLEY_STORE names no folder in {url!r}; write sqlite:///FOLDER")
    folder = Path(path).expanduser()
    if folder.is_file():
        raise ValueError(
            f"PARLEY_STORE names the file {folder}; it must be a folder (it holds one file a service)"
        )
    return folder


@asynccontextmanager
async def open_store(url: str, database: str, *, poll_interval: float = 0.5) -> AsyncGenerator[Store, None]:
    """Open the database of one service, making it where it is missing.

    Args:
        url: `sqlite:///FOLDER` (the database is the file FOLDER/`database`.db) or a MongoDB URL (the database is
            PREFIX_`database`; PREFIX is the URL's own database, or `parley`).
        database: The service's name.
        poll_interval: Seconds between two looks at a followed log, for appends that nothing else tells of.

    Raises:
        ValueError: the URL is not one of these; the message names PARLEY_STORE.
        StorageError: the database cannot be used as it is.
        StoreUnavailableError: it does not answer now.
    """
    folder = sqlite_folder(url)
    opened = (
        _open_mongodb(url, database, poll_interval)
        if folder is None
        else _open_sqlite(folder, database, poll_interval)
    )
    async with opened as store:
        yield store


@asynccontextmanager
async def open_vectors(url: str) -> AsyncGenerator[Vectors, None]:
    """Open a vector store.

    Args:
        url: `edge:FOLDER` (embedded, for one process at a time; relative to the working directory, `~` is home) or
            `http://HOST:PORT` or `https://HOST:PORT`, a Qdrant server's gRPC port.

    Raises:
        ValueError: the URL is neither; the message names PARLEY_VECTORS.
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

        async with open_server(url) as server:
            yield server
    else:
        raise ValueError(f"{_VECTORS_HELP}, not {url!r}")


@asynccontextmanager
async def _open_sqlite(folder: Path, database: str, poll_interval: float) -> AsyncGenerator[Store, None]:
    async with open_database(folder / f"{database}.db") as opened:
        log = SqliteLog(opened, poll_interval=poll_interval)
        yield Store(documents=SqliteDocuments(opened), log=log, exclusive=True)


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


def _shown(url: str) -> str:
    """Return the URL without what might be a password."""
    scheme, found, rest = url.partition("://")
    return repr(f"{scheme}://{rest.rpartition('@')[2]}") if found else repr(url)
