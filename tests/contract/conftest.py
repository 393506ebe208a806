"""Every store that the contract suites run on. `open_again` is the same database seen by another process."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager
from typing import Final
from uuid import uuid4

import pytest
from pymongo import MongoClient

from parley.storage.encryption.wrapping import NO_KEYS, WrappingKeys
from parley.storage.opening import Store, open_store
from parley.storage.ports import Documents
from tests.contract.books import BOOKS
from tests.contract.mongodb_server import Server, add_options, run_server
from tests.contract.replica_set import run_replica_set
from tests.contract.reporting import report_mongodb
from tests.contract.server_process import NoServerError
from tests.support.encryption import create_keys
from tests.support.memory_mongodb import run_memory_mongodb

OpenAgain = Callable[[], AbstractAsyncContextManager[Store]]

_DATABASE = "contract"


_SERVERS: Final = {"mongodb": "mongodb_choice", "replica set": "replica_set_choice"}


@pytest.fixture(scope="session")
def mongodb_choice() -> Iterator[Server | str]:
    """A server, or why there is none."""
    with _run_or_say_why(run_server) as choice:
        yield choice


@pytest.fixture(scope="session")
def replica_set_choice() -> Iterator[Server | str]:
    """A replica set that others wrote, or why there is none."""
    with _run_or_say_why(run_replica_set) as choice:
        yield choice


@contextmanager
def _run_or_say_why(run: Callable[[], AbstractContextManager[Server]]) -> Iterator[Server | str]:
    with ExitStack() as stack:
        try:
            choice: Server | str = stack.enter_context(run())
        except NoServerError as error:
            choice = str(error)
        yield choice


@pytest.fixture(params=_SERVERS)
def mongodb_url(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Iterator[str]:
    with _use_database(request.getfixturevalue(_SERVERS[request.param]), record_property) as url:
        yield url


@pytest.fixture
def replica_set_url(
    replica_set_choice: Server | str, record_property: Callable[[str, object], None]
) -> Iterator[str]:
    with _use_database(replica_set_choice, record_property) as url:
        yield url


@contextmanager
def _use_database(choice: Server | str, record_property: Callable[[str, object], None]) -> Iterator[str]:
    """Yield the URL of databases of a test's own, and drop them after it."""
    if isinstance(choice, str):
        record_property("mongodb", f"SKIPPED: {choice}")
        pytest.skip(f"MongoDB: {choice}")
    record_property("mongodb", f"ran on {choice.kind}")
    prefix = f"parley_test_{uuid4().hex[:12]}"
    url = choice.database_url(prefix)
    yield url
    with MongoClient[dict[str, object]](url) as client:
        client.drop_database(f"{prefix}_{_DATABASE}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    report_mongodb(terminalreporter)


@pytest.fixture(scope="session")
def memory_url() -> Iterator[str]:
    with run_memory_mongodb() as url:
        yield url


_ENCRYPTED: Final = "encrypted "
_STORES: Final = [
    "sqlite",
    *_SERVERS,
    "mongodb in memory",
    f"{_ENCRYPTED}sqlite",
    f"{_ENCRYPTED}mongodb in memory",
]


def _run_rarely_on(*rare: str) -> pytest.MarkDecorator:
    params = [pytest.param(name, marks=[pytest.mark.long] if name in rare else []) for name in _STORES]
    return pytest.mark.parametrize("store_url", params, indirect=True)


rarely_on_a_replica_set = _run_rarely_on("replica set")
"""A test that takes long and asks nothing of a server that others do not ask: `make long` runs it on a replica set."""
rarely_on_a_single_server = _run_rarely_on("mongodb")
"""A test that takes long: `make long` runs it on a server without replicas. One in memory does what is asked of it, and a replica set is by others too."""
rarely_on_a_server = _run_rarely_on(*_SERVERS)
"""A test that takes long: `make long` runs it on servers that others wrote. One in memory shows the same in a tenth of the time."""


@pytest.fixture(params=_STORES)
def store_url(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    record_property: Callable[[str, object], None],
) -> Iterator[str]:
    kind = request.param.removeprefix(_ENCRYPTED)
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('store')}"
    elif kind == "mongodb in memory":
        yield f"{request.getfixturevalue('memory_url')}parley_test_{uuid4().hex[:12]}"
    else:
        with _use_database(request.getfixturevalue(_SERVERS[kind]), record_property) as url:
            yield add_options(url, "timeoutMS=60000")  # a machine under load takes 10 s for 15 MB


@pytest.fixture
def wrapping(request: pytest.FixtureRequest) -> WrappingKeys:
    """The operator's keys, which all processes of a test share; none where nothing is encrypted."""
    is_encrypted = request.node.callspec.params["store_url"].startswith(_ENCRYPTED)
    return create_keys() if is_encrypted else NO_KEYS


@pytest.fixture
def open_again(store_url: str, wrapping: WrappingKeys) -> OpenAgain:
    return lambda: open_store(store_url, _DATABASE, wrapping=wrapping, poll_interval=0.02)


@pytest.fixture
async def store(open_again: OpenAgain) -> AsyncIterator[Store]:
    async with open_again() as opened:
        yield opened


@pytest.fixture
async def books(store: Store) -> Documents:
    await store.documents.prepare(BOOKS)
    return store.documents


@pytest.fixture
async def other_books(open_again: OpenAgain) -> AsyncIterator[Documents]:
    """The books as another process sees them."""
    async with open_again() as store:
        yield store.documents
