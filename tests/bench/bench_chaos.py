"""Debates on three orchestrators and two gateways while every service is killed, stopped, drained and cut off.

They are held in waves of a seed each, so that the store does not grow and what was found can be made again soon:
`PARLEY_CHAOS_SEED=n` begins with that seed, and with `--quick` holds that wave alone.
"""

import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median, quantiles

from tests.bench.figures import main, table
from tests.chaos.driver import Clients
from tests.chaos.harness import Options, System, running_system
from tests.chaos.monkey import Chaos, Outcome, run_chaos

_SETTING = "PARLEY_CHAOS_SEED"
_WAVES = 10
_DEBATES = 20
_FAULTS = {"kill": 2, "stop": 1, "drain": 1, "cut": 1}
"""Of each wave, for each service."""


async def run(quick: bool) -> None:
    """Print what was done and what was found; end with 1 where a promise was broken."""
    first = int(os.environ.get(_SETTING) or random.SystemRandom().randrange(10**6))
    folder = Path(tempfile.mkdtemp(prefix="parley-chaos-"))
    outcomes = []
    with running_system(folder, Options(latency=0.1)) as system:
        for seed in range(first, first + (1 if quick else _WAVES)):
            outcome = await _wave(system, seed)
            outcomes.append(outcome)
            print(
                f"{_SETTING}={seed}: {outcome.report.debates} debates in {outcome.seconds:.0f} s", flush=True
            )
            for violation in outcome.report.violations:
                print(violation, flush=True)
    _show(outcomes)
    if any(outcome.report.violations for outcome in outcomes):
        print(f"\nwhat the services wrote: {folder}")
        sys.exit(1)
    shutil.rmtree(folder)


async def _wave(system: System, seed: int) -> Outcome:
    system.make_ready()
    async with Clients(system) as clients:
        outcome = await run_chaos(system, clients, Chaos(seed, debates=_DEBATES, faults=_FAULTS))
    if not outcome.report.violations:
        system.forget()
    return outcome


def _show(outcomes: list[Outcome]) -> None:
    reports = [outcome.report for outcome in outcomes]
    latencies = [each for outcome in outcomes for each in outcome.latencies]
    rows = [
        ("debates accepted, and whole at the end", f"{sum(each.debates for each in reports)}"),
        (
            "events, recorded step results",
            f"{sum(each.events for each in reports)}, {sum(each.steps for each in reports)}",
        ),
        ("model calls", f"{sum(each.calls for each in reports)}"),
        (
            "made again, of which in flight at a gateway's fault",
            f"{sum(each.repeated for each in reports)}, {sum(each.excused for each in reports)}",
        ),
        ("promises broken", f"{sum(len(each.violations) for each in reports)}"),
        ("seconds", f"{sum(outcome.seconds for outcome in outcomes):.0f}"),
        (
            "seconds a debate, median and 95 %",
            f"{median(latencies):.1f}, {quantiles(latencies, n=20)[-1]:.1f}",
        ),
    ]
    print()
    table(["under faults", "figure"], rows)
    print()
    faults = sum((outcome.faults for outcome in outcomes), Counter[str]())
    kinds = sorted({name.partition(" ")[0] for name in faults})
    services = sorted({name.partition(" ")[2] for name in faults})
    table(
        ["faults", *kinds],
        [[service, *(str(faults[f"{kind} {service}"]) for kind in kinds)] for service in services],
    )


if __name__ == "__main__":
    main(__doc__, run)
