"""Debates of every format while the store is held, slowed, cut off and restarted; with every case, services are killed as well.

`PARLEY_TEST_CHAOS_SEED=n` makes the run with that seed again.
"""

from dataclasses import replace
from typing import Final

import pytest

from tests.chaos.driver import Clients
from tests.chaos.harness import System
from tests.chaos.monkey import Chaos, require_clean_run

_STORE: Final = Chaos(
    seed=0,
    debates=3,
    at_once=3,
    formats=("panel", "arena", "moderated"),
    faults={},
    models_fail=True,
    store_faults={"hold": 1, "slow": 1, "cut": 1, "restart": 1},
    gap=0.3,
    trouble=(0.3, 0.8),
    a_command=0.05,  # the leases of this system are shorter than a second
)
_ALL: Final = replace(_STORE, debates=12, at_once=6, faults={"kill": 1, "cut": 1}, trouble=(0.5, 2.0))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("chaos", [_STORE, _ALL], ids=["store", "store and services"])
async def test_debates_of_every_format_outlast_a_store_in_trouble(
    system: System, clients: Clients, seed: int, chaos: Chaos
) -> None:
    await require_clean_run(system, clients, replace(chaos, seed=seed))
