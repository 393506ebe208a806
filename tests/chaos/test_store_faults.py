"""Debates of every format while the store is held, slowed, cut off and restarted; with every case, services are killed as well.

`PARLEY_TEST_CHAOS_SEED=n` makes the run with that seed again.
"""

import os
import random
import sys
from dataclasses import replace
from typing import Final

import pytest

from tests.chaos.driver import Clients
from tests.chaos.harness import System
from tests.chaos.monkey import Chaos, run_chaos

_SETTING: Final = "PARLEY_TEST_CHAOS_SEED"
_STORE: Final = Chaos(
    seed=0,
    debates=3,
    at_once=3,
    formats=("panel", "arena", "moderated"),
    faults={},
    store_faults={"hold": 1, "slow": 1, "cut": 1, "restart": 1},
    gap=0.3,
    trouble=(0.3, 0.8),
    a_command=0.05,  # the leases of this system are shorter than a second
)
_ALL: Final = replace(_STORE, debates=12, at_once=6, faults={"kill": 1, "cut": 1}, trouble=(0.5, 2.0))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("chaos", [_STORE, _ALL], ids=["store", "store and services"])
async def test_debates_of_every_format_outlast_a_store_in_trouble(
    system: System, clients: Clients, capsys: pytest.CaptureFixture[str], chaos: Chaos
) -> None:
    seed = int(os.environ.get(_SETTING) or random.SystemRandom().randrange(10**6))
    with capsys.disabled():
        sys.stdout.write(f"\nchaos: {_SETTING}={seed}\n")
    system.make_ready()
    outcome = await run_chaos(system, clients, replace(chaos, seed=seed))
    problems = [*map(str, outcome.report.violations), *system.tracebacks()]
    assert not problems, f"{_SETTING}={seed}\n" + "\n".join(problems)
    assert outcome.report.debates >= chaos.debates
    assert sum(outcome.faults[f"{kind} store"] for kind in chaos.store_faults) == 4
