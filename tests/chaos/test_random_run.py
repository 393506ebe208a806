"""Debates under seeded kills, stops and cuts: nothing is lost, doubled or paid twice.

`PARLEY_TEST_CHAOS_SEED=n` makes the run with that seed again.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.driver import Clients
from tests.chaos.embedded_system import run_embedded_system
from tests.chaos.harness import System, run_system
from tests.chaos.monkey import Chaos, require_clean_run, run_chaos
from tests.contract.mongodb_server import run_server


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    """A system on a store that answers at once: with a slow one, most of a run is waiting for it."""
    with run_server(in_memory=True) as store, run_system(tmp_path, store=store) as system:
        yield system


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("debates", "at_once", "each_fault"), [(10, 3, 1), pytest.param(20, 6, 2, marks=pytest.mark.long)]
)
async def test_nothing_is_lost_doubled_or_paid_twice(
    system: System,
    clients: Clients,
    seed: int,
    debates: int,
    at_once: int,
    each_fault: int,
) -> None:
    faults = {"kill": each_fault, "stop": 1, "cut": each_fault}
    outcome = await run_chaos(system, clients, Chaos(seed, debates=debates, at_once=at_once, faults=faults))
    assert not outcome.report.violations, f"seed {seed}\n" + "\n".join(map(str, outcome.report.violations))
    assert outcome.report.debates >= debates
    assert outcome.faults["kill orchestrator"] == each_fault


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_the_embedded_system_loses_doubles_and_pays_twice_for_nothing(
    tmp_path: Path, seed: int
) -> None:
    chaos = Chaos(
        seed,
        debates=6,
        formats=("panel", "arena", "moderated"),
        models_fail=True,
        faults={"kill": 2, "drain": 2},
        gap=3.0,
    )
    with run_embedded_system(tmp_path, latency=0.02) as system:
        async with Clients(system) as clients:
            await require_clean_run(system, clients, chaos)
