"""Debates on two orchestrators and two gateways while every service is killed, stopped, drained and cut off.

They are held in waves of a seed each, so that the store does not grow and what was found can be made again soon:
`PARLEY_CHAOS_SEED=n` begins with that seed, and with `--quick` holds that wave alone. `PARLEY_CHAOS_DEBATES=n` holds about
so many debates in place of 200. With `PARLEY_CHAOS_STORE=on` debates are of every format, models fail now and then, and the
store is held, slowed (1 s a command), cut off and restarted as well; with `memory` so is one that answers from memory, many times faster, which
can only be cut off where the other is restarted. With `sqlite` the embedded system holds such debates, and is killed and drained.
"""

import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

from tests.bench.figures import main, table
from tests.chaos.driver import Clients
from tests.chaos.embedded_system import run_embedded_system
from tests.chaos.harness import ORCHESTRATORS, Options, System, run_system
from tests.chaos.monkey import Chaos, Outcome, run_chaos
from tests.contract.mongodb_server import Server
from tests.contract.replica_set import run_replica_set
from tests.support.memory_mongodb import run_memory_mongodb

_SETTING = "PARLEY_CHAOS_SEED"
_DEBATES = 20
"""Of each wave."""
_ALL_DEBATES = int(os.environ.get("PARLEY_CHAOS_DEBATES") or 200)
_STORE = os.environ.get("PARLEY_CHAOS_STORE", "")
_REPLICA_SET = "replica-set"
_SQLITE = "sqlite"
_LATENCY = 0.1
_FAULTS = {"kill": 2, "stop": 1, "drain": 1, "cut": 1}
"""Of each wave, for each service."""
_EMBEDDED_FAULTS = {"kill": 10, "drain": 5}
"""Of each wave: as many as all services get."""
_FORMATS = ("panel", "arena", "moderated")
_STORE_FAULTS = {"hold": 2, "slow": 1, "cut": 2, "restart": 1}
_OPTIONS = Options(latency=_LATENCY, orchestrators=ORCHESTRATORS[:2])
_STORE_OPTIONS = replace(_OPTIONS, lease=4.0, gateway_lease=6.0, poll=1.0)
"""Leases outlast a store that takes a second for a command."""


async def run(quick: bool) -> None:
    """Print what was done and what was found; end with 1 where a promise was broken."""
    first = int(os.environ.get(_SETTING) or random.SystemRandom().randrange(10**6))
    folder = Path(tempfile.mkdtemp(prefix="parley-chaos-"))
    waves = 1 if quick else max(_ALL_DEBATES // _DEBATES, 1)
    outcomes, tracebacks = [], []
    with _run_system(folder) as system:
        for seed in range(first, first + waves):
            outcome = await _wave(system, seed)
            outcomes.append(outcome)
            print(
                f"{_SETTING}={seed}: {outcome.report.debates} debates in {outcome.seconds:.0f} s", flush=True
            )
            for violation in outcome.report.violations:
                print(violation, flush=True)
        tracebacks = system.tracebacks()
    _show(outcomes)
    print("\n".join(["", *tracebacks]))
    if tracebacks or any(outcome.report.violations for outcome in outcomes):
        print(f"\nwhat the services wrote: {folder}")
        sys.exit(1)
    shutil.rmtree(folder)


@contextmanager
def _run_system(folder: Path) -> Iterator[System]:
    with ExitStack() as stack:
        if _STORE == _SQLITE:
            yield stack.enter_context(run_embedded_system(folder, _LATENCY))
            return
        store = None
        if _STORE == "memory":
            store = Server(stack.enter_context(run_memory_mongodb()), "in memory")
        elif _STORE == _REPLICA_SET:
            store = stack.enter_context(run_replica_set())
        options = _STORE_OPTIONS if _STORE else _OPTIONS
        yield stack.enter_context(run_system(folder, options, store=store))


async def _wave(system: System, seed: int) -> Outcome:
    system.make_ready()
    async with Clients(system) as clients:
        outcome = await run_chaos(system, clients, _choose_chaos(seed))
    if not outcome.report.violations:
        system.forget()
    return outcome


def _choose_chaos(seed: int) -> Chaos:
    chaos = Chaos(seed, debates=_DEBATES, faults=_FAULTS)
    if not _STORE:
        return chaos
    chaos = replace(chaos, at_once=10, formats=_FORMATS, models_fail=True)
    if _STORE == _SQLITE:
        return replace(chaos, faults=_EMBEDDED_FAULTS, gap=6.0)
    return replace(chaos, store_faults=_STORE_FAULTS | ({"step-down": 2} if _STORE == _REPLICA_SET else {}))


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
