"""Debates of every format on a replica set that others wrote, which is killed for five seconds and whose primary steps down.

`PARLEY_TEST_CHAOS_SEED=n` makes the run with that seed again.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from tests.chaos.driver import Clients
from tests.chaos.harness import ORCHESTRATORS, System, run_system
from tests.chaos.monkey import Chaos, require_clean_run
from tests.contract.replica_set import run_replica_set
from tests.contract.server_process import NoServerError

_POLLS: Final = "followers of logs poll"
_CALM: Final = Chaos(seed=0, debates=3, at_once=3, formats=("panel", "arena", "moderated"), faults={})
_TROUBLE: Final = replace(
    _CALM, models_fail=True, store_faults={"restart": 1, "step-down": 1}, gap=0.3, trouble=(5.0, 5.0)
)


@pytest.fixture(scope="module")
def shared_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System | str]:
    """A system on a replica set, or why there is none."""
    try:
        with (
            run_replica_set() as server,
            run_system(tmp_path_factory.mktemp("chaos"), store=server) as system,
        ):
            yield system
    except NoServerError as error:
        yield str(error)


@pytest.mark.timeout(300)
async def test_five_services_hold_debates_of_every_format_and_their_change_streams_stay_open(
    system: System, clients: Clients, seed: int
) -> None:
    await require_clean_run(system, clients, replace(_CALM, seed=seed))
    assert not [name for name in ORCHESTRATORS if _POLLS in system.tail(name, 10_000)]


@pytest.mark.timeout(300)
async def test_debates_outlast_a_primary_that_is_killed_for_five_seconds_and_one_that_steps_down(
    system: System, clients: Clients, seed: int
) -> None:
    await require_clean_run(system, clients, replace(_TROUBLE, seed=seed))
