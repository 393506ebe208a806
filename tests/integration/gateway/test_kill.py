"""Two gateways over one store, and kill -9 of one of them: the model server's ledger is the witness."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from tests.contract.mongodb_server import Server, run_server
from tests.contract.replica_set import run_replica_set
from tests.contract.server_process import NoServerError
from tests.integration.gateway.scenarios import kill_one

_SERVERS: Final[Mapping[str, Callable[[], AbstractContextManager[Server]]]] = {
    "mongodb": partial(run_server, in_memory=True),
    "replica set": run_replica_set,
}


@pytest.fixture(params=["sqlite", "mongodb", pytest.param("replica set", marks=pytest.mark.long)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}"
        return
    try:
        with _SERVERS[request.param]() as server:
            yield server.database_url(f"parley_test_{uuid4().hex[:12]}")
    except NoServerError as error:
        pytest.skip(f"MongoDB: {error}")


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "which",
    [
        pytest.param(0, id="the-first-is-killed"),
        pytest.param(1, id="the-second-is-killed", marks=pytest.mark.long),
    ],
)
async def test_a_killed_gateway_costs_at_most_the_calls_that_were_in_flight_at_it(
    store: str, which: int
) -> None:
    cost = await kill_one(store, calls=96, which=which)
    assert cost.at_killed
    assert cost.unanswered == cost.unstored == 0
    assert len(cost.paid) == cost.calls
    assert cost.paid_again <= cost.at_killed
    assert max(cost.paid.values()) <= 2
