"""A tenant's debate of 13 calls alone and beside a tenant at its limits, and how soon GetDebate answers meanwhile."""

import os
from collections import Counter
from statistics import median
from typing import Any, Final

from parley.client import ParleyClient
from tests.bench.figures import aim, main, middle, table
from tests.bench.greedy_tenant import DEAD_MODEL, Greed, greedy_tenant
from tests.bench.two_tenants import CALL_SECONDS, Measured, percentile_99, run_debates, show_cpu, two_tenants

_SILENT: Final[dict[str, object]] = {"match": {"model": DEAD_MODEL}, "fault": {"kind": "hang"}}
_TIMES_LONGER: Final = 1.2
_MILLISECONDS: Final = 100


async def run(quick: bool) -> None:
    """Measure by turns, each with a system of its own: alone, then beside the greedy tenant."""
    greed = Greed(**{name: _size(name, at_once) for name, at_once in _sizes(quick).items()})
    turns, times = (3, 3) if quick else (6, 4)
    alone, beside = Measured(), Measured()
    answers: dict[str, Counter[str]] = {}
    seconds = 0.0
    for _ in range(turns):
        async with (
            two_tenants(_SILENT) as system,
            ParleyClient(system.address, token=system.modest) as client,
        ):
            await run_debates(client, Measured(), 1)  # opens connections, and learns of the endpoint
            await run_debates(client, alone, times)
            async with greedy_tenant(system.address, system.greedy, greed) as told:
                await run_debates(client, beside, times)
            seconds += float(str(told["seconds"]))
            for what, found in _counts(told):
                answers.setdefault(what, Counter()).update(found)
    _show(alone, beside)
    print()
    table(
        ["the greedy tenant asked for", "times", "heard"],
        [
            [what, str(found.total()), ", ".join(f"{name} {count}" for name, count in found.most_common())]
            for what, found in answers.items()
        ],
    )
    asked = answers.get("request", Counter[str]()).total()
    print(f"\n{asked / seconds:.0f} requests a second, load {os.getloadavg()[0]:.1f}")


def _sizes(quick: bool) -> dict[str, int]:
    whole = Greed()
    return {
        "debates": whole.debates,
        "watches": 1000 if quick else whole.watches,
        "requests": whole.requests,
        "parts": whole.parts,
        "documents": whole.documents,
    }


def _size(name: str, otherwise: int) -> int:
    """Return how much the greedy tenant takes of one thing; `PARLEY_BENCH_WATCHES=0` and the like say otherwise."""
    return int(os.environ.get(f"PARLEY_BENCH_{name.upper()}", otherwise))


def _counts(told: dict[str, Any]) -> list[tuple[str, Counter[str]]]:
    return [(what, Counter(found)) for what, found in told["answers"].items()]


def _show(alone: Measured, beside: Measured) -> None:
    ratio = round(median(beside.debates) / median(alone.debates), 3)
    looks = [percentile_99(each.looks) for each in (alone, beside)]
    table(
        [f"13 calls at {CALL_SECONDS * 1000:.0f} ms", "alone", "beside the greedy tenant", "ratio", "aim"],
        [
            [
                "debate, seconds (lowest-highest)",
                middle(alone.debates),
                middle(beside.debates),
                f"{ratio:.3f}",
                aim(ratio, _TIMES_LONGER),
            ],
            [
                "GetDebate, ms (lowest-highest)",
                middle(alone.looks, 1),
                middle(beside.looks, 1),
                f"{median(beside.looks) / median(alone.looks):.1f}",
                "",
            ],
            [
                f"p99 of {len(alone.looks)} and {len(beside.looks)}",
                *(f"{each:.1f}" for each in looks),
                f"{looks[1] / looks[0]:.1f}",
                aim(round(looks[1], 1), _MILLISECONDS),
            ],
        ],
    )
    show_cpu(alone, beside)


if __name__ == "__main__":
    main(__doc__, run)
