"""Many debates under seeded kills, stops and cuts: nothing is lost, doubled or paid twice.

`PARLEY_TEST_CHAOS_SEED=n` makes the run with that seed again.
"""

import os
import random
import sys

import pytest

from tests.chaos.driver import Clients
from tests.chaos.harness import System
from tests.chaos.monkey import Chaos, run_chaos

_SETTING = "PARLEY_TEST_CHAOS_SEED"


@pytest.mark.timeout(180)
async def test_nothing_is_lost_doubled_or_paid_twice(
    system: System, clients: Clients, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get(_SETTING) or random.SystemRandom().randrange(10**6))
    with capsys.disabled():
        sys.stdout.write(f"\nchaos: {_SETTING}={seed}\n")
    system.make_ready()
    outcome = await run_chaos(system, clients, Chaos(seed, debates=20))
    assert not outcome.report.violations, f"{_SETTING}={seed}\n" + "\n".join(
        map(str, outcome.report.violations)
    )
    assert outcome.report.debates >= 20
    assert outcome.faults["kill orchestrator"] == 2
