"""One system for all tests of this folder; a test finds it as the one before left it, and makes it ready for itself."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.chaos.driver import Clients
from tests.chaos.harness import SERVICES, System, running_system
from tests.contract.mongodb_server import NoServerError


@pytest.fixture(scope="session")
def shared_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System | str]:
    """A system, or why there is none."""
    try:
        with running_system(tmp_path_factory.mktemp("chaos")) as system:
            yield system
    except NoServerError as error:
        yield str(error)


@pytest.fixture
def system(
    shared_system: System | str,
    record_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
) -> Iterator[System]:
    if isinstance(shared_system, str):
        record_property("mongodb", f"SKIPPED: {shared_system}")
        pytest.skip(f"MongoDB: {shared_system}")
    yield shared_system
    for name in SERVICES:
        request.node.add_report_section("teardown", name, shared_system.tail(name))


@pytest.fixture
async def clients(system: System) -> AsyncIterator[Clients]:
    async with Clients(system) as clients:
        yield clients
    system.forget()
