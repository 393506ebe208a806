"""A tenant's debate of 13 calls alone and beside a tenant at its limits, and how soon GetDebate answers meanwhile."""

import os
from collections import Counter
from typing import Final

from parley.client import ParleyClient
from tests.bench.figures import main
from tests.bench.greedy_tenant import DEAD_MODEL, Greed, greedy_tenant, read_greed
from tests.bench.two_tenants import Measured, run_debates, run_two_tenants, show_answers, show_debates

_SILENT: Final[dict[str, object]] = {"match": {"model": DEAD_MODEL}, "fault": {"kind": "hang"}}
_TIMES_LONGER: Final = 1.2
_MILLISECONDS: Final = 100


async def run(quick: bool) -> None:
    """Measure by turns, each with a system of its own: alone, then beside the greedy tenant."""
    greed = read_greed(Greed(watches=1000) if quick else Greed())
    turns, times = (3, 3) if quick else (6, 4)
    alone, beside = Measured(), Measured()
    answers: dict[str, Counter[str]] = {}
    seconds = 0.0
    for _ in range(turns):
        async with (
            run_two_tenants(_SILENT) as system,
            ParleyClient(system.address, token=system.modest) as client,
        ):
            await run_debates(client, Measured(), 1)  # opens connections, and learns of the endpoint
            await run_debates(client, alone, times)
            async with greedy_tenant(system.address, system.greedy, greed) as told:
                await run_debates(client, beside, times)
            seconds += told["seconds"]
            for what, found in told["answers"].items():
                answers.setdefault(what, Counter()).update(found)
    show_debates(alone, beside, _TIMES_LONGER, _MILLISECONDS)
    show_answers(answers)
    asked = answers.get("request", Counter[str]()).total()
    print(f"\n{asked / seconds:.0f} requests a second, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(__doc__, run)
