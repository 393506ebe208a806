"""Every store that the contract suites run on. `open_again` is the same database seen by another process."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from uuid import uuid4

import pytest
from pymongo import MongoClient

from parley.storage.opening import Store, open_store
from tests.contract.mongodb_server import NoServerError, Server, running_server
from tests.contract.reporting import report_mongodb
from tests.support.memory_mongodb import running_memory_mongodb

OpenAgain = Callable[[], AbstractAsyncContextManager[Store]]

_DATABASE = "contract"


@pytest.fixture(scope="session")
def mongodb_choice() -> Iterator[Server | str]:
    """A server, or why there is none."""
    try:
        with running_server() as server:
            yield server
    except NoServerError as error:
        yield str(error)


@pytest.fixture
def mongodb_url(
    mongodb_choice: Server | str, record_property: Callable[[str, object], None]
) -> Iterator[str]:
    if isinstance(mongodb_choice, str):
        record_property("mongodb", f"SKIPPED: {mongodb_choice}")
        pytest.skip(f"MongoDB: {mongodb_choice}")
    record_property("mongodb", f"ran on {mongodb_choice.kind}")
    prefix = f"parley_test_{uuid4().hex[:12]}"
    url = mongodb_choice.database_url(prefix)
    yield url
    with MongoClient[dict[str, object]](url) as client:
        client.drop_database(f"{prefix}_{_DATABASE}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    report_mongodb(terminalreporter)


@pytest.fixture(scope="session")
def memory_url() -> Iterator[str]:
    with running_memory_mongodb() as url:
        yield url


@pytest.fixture(params=["sqlite", "mongodb", "mongodb in memory"])
def store_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('store')}"
    if request.param == "mongodb in memory":
        return f"{request.getfixturevalue('memory_url')}parley_test_{uuid4().hex[:12]}"
    url: str = request.getfixturevalue("mongodb_url")
    return url


@pytest.fixture
def open_again(store_url: str) -> OpenAgain:
    return lambda: open_store(store_url, _DATABASE, poll_interval=0.02)


@pytest.fixture
async def store(open_again: OpenAgain) -> AsyncIterator[Store]:
    async with open_again() as opened:
        yield opened
