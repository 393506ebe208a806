"""One service's database on a MongoDB server.

Writes are acknowledged by a majority of the replica set with their journals, and reads see only what a majority
has, on the primary: so what was acknowledged, or was read, is never rolled back. Neither a URL nor a server's
defaults can weaken this.
"""

import asyncio
import re
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from pymongo import ASCENDING, AsyncMongoClient, ReadPreference, WriteConcern
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    DuplicateKeyError,
    InvalidURI,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
    WriteError,
)
from pymongo.monitoring import CommandListener
from pymongo.read_concern import ReadConcern

from parley.runtime.logs import get_logger
from parley.storage.ports import StorageError, StoreUnavailableError

Database = AsyncDatabase[dict[str, Any]]

LOG = "_log"  # names of callers' collections begin with a letter
_MIGRATIONS_COLLECTION = "_migrations"
_DEFAULTS = {"timeoutMS": 10_000, "appname": "parley"}  # no operation takes longer, unless the URL says so
_ACCESS_CODES = (13, 18)  # Unauthorized, AuthenticationFailed
_DUPLICATE_KEY_CODE = 11000
_TIMEOUTS = re.compile(r" \(configured timeouts: [^)]*\)")

_logger = get_logger(__name__)


@asynccontextmanager
async def open_mongodb(
    url: str, database: str, *, listeners: Sequence[CommandListener] = ()
) -> AsyncGenerator[Database, None]:
    """Connect, and bring the database PREFIX_`database` up to date; PREFIX is the URL's own database, or `parley`.

    Raises:
        ValueError: the URL is not a MongoDB URL.
        StoreUnavailableError: no server answers.
        StorageError: the server refuses.
    """
    try:
        given = {name.lower() for name, _ in parse_qsl(urlsplit(url).query)}
        prefix = urlsplit(url).path.strip("/") or "parley"
        options: Any = {name: value for name, value in _DEFAULTS.items() if name.lower() not in given}
        with _log_warnings():
            client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(
                url, event_listeners=listeners, **options
            )
    except (InvalidURI, ConfigurationError, ValueError) as error:
        raise ValueError(f"PARLEY_STORE is not a usable MongoDB URL: {_first_line(error)}") from error
    async with client:
        opened = client.get_database(
            f"{prefix}_{database}",
            read_concern=ReadConcern("majority"),
            write_concern=WriteConcern(w="majority", j=True),
            read_preference=ReadPreference.PRIMARY,
        )
        with map_errors():
            await _migrate(opened)
        yield opened


@contextmanager
def _log_warnings() -> Iterator[None]:
    """Log what the driver warns of, such as an option of the URL that it does not know, as a line like others."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
    for each in found:
        said = str(each.message).partition(" Refer to docstring")[0]
        _logger.warning("the MongoDB driver warns of PARLEY_STORE", reason=said)


async def insert_once(collection: AsyncCollection[dict[str, Any]], document: Mapping[str, Any]) -> None:
    """Send an insert once, with the collection's write concern.

    `insert_one` sends it again without end until `timeoutMS` has passed, if its answer is lost (retryable writes).

    Raises:
        PyMongoError: as `insert_one` does.
    """
    answer = await collection.database.command(
        {
            "insert": collection.name,
            "documents": [document],
            "writeConcern": collection.write_concern.document,
        }
    )
    for error in answer.get("writeErrors", ()):
        kind = DuplicateKeyError if error["code"] == _DUPLICATE_KEY_CODE else WriteError
        raise kind(error.get("errmsg", ""), error["code"], error)
    if error := answer.get("writeConcernError"):
        raise WriteConcernError(error.get("errmsg", ""), error["code"], error)


_LOST_LOCKS: Final = frozenset({"cannot wait on un-acquired lock", "Lock is not acquired."})
"""What PyMongo says, before Python 3.12, if a wait for a server ends just as its time is over: nothing was sent then."""


@contextmanager
def map_errors() -> Iterator[None]:
    """Map PyMongo's errors to the ports' errors; DuplicateKeyError passes.

    A cancellation passes too, even if it came together with an answer and a library swallowed it, as `asyncio.wait_for` does
    before Python 3.12: otherwise the cancelled task would never stop.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        yield
    except DuplicateKeyError:
        raise
    except DocumentTooLarge as error:
        raise ValueError(f"too large for a store: {_first_line(error)}") from error
    except BulkWriteError as error:
        raise _to_storage_error(_take_first(error)) from error
    except PyMongoError as error:
        raise _to_storage_error(error) from error
    except RuntimeError as error:
        if str(error) not in _LOST_LOCKS:
            raise
        raise StoreUnavailableError("MongoDB does not answer: no server was found") from error
    finally:
        if task and task.cancelling() > before:
            raise asyncio.CancelledError


def _take_first(error: BulkWriteError) -> PyMongoError:
    """Return the first error of many writes as one write raises it; that of all of them says nothing."""
    for kind, name in ((WriteError, "writeErrors"), (WriteConcernError, "writeConcernErrors")):
        for each in error.details.get(name, ()):
            return kind(each.get("errmsg", ""), each["code"], each)
    return error


def _to_storage_error(error: PyMongoError) -> StorageError:
    if isinstance(error, OperationFailure) and error.code in _ACCESS_CODES:
        return StorageError(
            f"MongoDB refuses ({_first_line(error)}); check the user and password in PARLEY_STORE"
        )
    if isinstance(error, ConnectionFailure | WriteConcernError) or error.timeout or _is_temporary(error):
        return StoreUnavailableError(f"MongoDB does not answer: {_first_line(error)}")
    return StorageError(f"MongoDB: {_first_line(error)}")


def _is_temporary(error: PyMongoError) -> bool:
    return any(error.has_error_label(label) for label in ("RetryableWriteError", "TransientTransactionError"))


def _first_line(error: Exception) -> str:
    """Return the first line of the error, without the driver's timeouts and its description of every server."""
    line = str(error).partition("\n")[0].partition(", full error:")[0].partition(", Timeout:")[0]
    return _TIMEOUTS.sub("", line)


async def _index_log(database: Database) -> None:
    await database[LOG].create_index([("log", ASCENDING), ("last", ASCENDING)], name="log_last")


# Each may run twice, or on two replicas at once, and must work together with the version before it.
_MIGRATIONS: Sequence[Callable[[Database], Awaitable[None]]] = (_index_log,)


async def _migrate(database: Database) -> None:
    done = database[_MIGRATIONS_COLLECTION]
    applied = {document["_id"] async for document in done.find({})}
    for number, migration in enumerate(_MIGRATIONS, start=1):
        if number not in applied:
            await migration(database)
            record = {"name": migration.__name__.strip("_"), "applied_at": datetime.now(UTC)}
            await done.update_one({"_id": number}, {"$setOnInsert": record}, upsert=True)
