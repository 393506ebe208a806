"""One system for all tests of this folder; a test finds it as the one before left it, and makes it ready for itself."""

import os
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.driver import Clients
from tests.chaos.harness import SERVICES, System, run_system
from tests.contract.mongodb_server import run_server
from tests.contract.server_process import NoServerError

_SEED: Final = "PARLEY_TEST_CHAOS_SEED"
_FOLDER: Final = f"{Path(__file__).parent}{os.sep}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let every run try one case of each kill, and `make chaos` all of them."""
    seen: set[str] = set()
    for item in items:
        if not isinstance(item, pytest.Function) or not str(item.path).startswith(_FOLDER):
            continue
        name = f"{item.path.name}::{item.originalname}"
        if name in seen:
            item.add_marker(pytest.mark.long)
        seen.add(name)


@pytest.fixture(scope="session")
def shared_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System | str]:
    """A system, or why there is none."""
    try:
        with (
            run_server(in_memory=True) as store,
            run_system(tmp_path_factory.mktemp("chaos"), store=store) as system,
        ):
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


@pytest.fixture
def seed(capsys: pytest.CaptureFixture[str]) -> int:
    """The seed of a random run, which it prints. `PARLEY_TEST_CHAOS_SEED=n` makes the run with that seed again."""
    seed = int(os.environ.get(_SEED) or random.SystemRandom().randrange(10**6))
    with capsys.disabled():
        sys.stdout.write(f"\nchaos: {_SEED}={seed}\n")
    return seed
