"""A tenant with 70 debates of 4 MiB of documents, 1,000 watches and 20 stalled readers: the memory of each service, and another tenant's debates."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Final

import yaml

from parley.client import ParleyClient
from tests.bench.document_tenant import DOCUMENT_MODEL, DocumentGreed
from tests.bench.figures import aim, main, table
from tests.bench.greedy_tenant import greedy_tenant, read_greed
from tests.bench.replicas import memory_bytes, peak_memory_bytes
from tests.bench.two_tenants import Measured, run_debates, run_two_tenants, show_answers, show_debates

_VALUES: Final = Path(__file__).parents[2] / "charts/parley/values.yaml"
_SERVICES: Final = ("orchestrator", "gateway", "convergence", "ratings", "memory")
_TIMES_LONGER: Final = 1.5
_MILLISECONDS: Final = 150
_MIB: Final = 1024 * 1024
_UNITS: Final = {"Ki": 1024, "Mi": _MIB, "Gi": 1024 * _MIB}
_DOCUMENT_SECONDS: Final = 2.0
"""How long a model call with documents takes."""
_RULE: Final[dict[str, object]] = {
    "match": {"model": DOCUMENT_MODEL},
    "latency": {"median": _DOCUMENT_SECONDS},
}


async def run(quick: bool) -> None:
    """Measure alone, then next to the greedy tenant, in one system."""
    greed = read_greed(DocumentGreed())
    times = 5 if quick else 12
    alone, beside = Measured(), Measured()
    async with (
        run_two_tenants(_RULE, other_model=DOCUMENT_MODEL) as system,
        ParleyClient(system.address, token=system.modest) as client,
    ):
        await run_debates(client, Measured(), 1)  # opens connections, and learns of the endpoint
        await run_debates(client, alone, times)
        at_rest = memory_bytes()
        async with greedy_tenant(system.address, system.greedy, greed, "tests.bench.document_tenant") as told:
            await run_debates(client, beside, times)
            await asyncio.sleep(float(os.environ.get("PARLEY_BENCH_SECONDS", "20")))
            peak = peak_memory_bytes()
    failures = _show_memory(at_rest, peak)
    print()
    failures += show_debates(alone, beside, _TIMES_LONGER, _MILLISECONDS)
    show_answers({what: Counter(found) for what, found in told["answers"].items()})
    print(f"\nload {os.getloadavg()[0]:.1f}")
    if failures:
        raise SystemExit(f"missed: {', '.join(failures)}")


def _show_memory(at_rest: dict[str, float], peak: dict[str, float]) -> list[str]:
    """Print the memory of each service. Return those above the limit of the chart."""
    limits = _chart_limits()
    table(
        ["memory, MiB", "at rest", "most", "limit of the chart"],
        [
            [
                name,
                f"{at_rest[name] / _MIB:.0f}",
                f"{peak[name] / _MIB:.0f}",
                _aim_of(peak[name], limits[name]),
            ]
            for name in _SERVICES
        ],
    )
    return [f"memory of {name}" for name in _SERVICES if peak[name] > limits[name]]


def _aim_of(peak: float, limit: float) -> str:
    return aim(round(peak / _MIB), round(limit / _MIB))


def _chart_limits() -> dict[str, float]:
    """Return the memory that the chart allows each service, in bytes."""
    values = yaml.safe_load(_VALUES.read_text())
    usual = values["defaults"]["resources"]["limits"]["memory"]
    given = {
        name: values["services"][name].get("resources", {}).get("limits", {}).get("memory", usual)
        for name in _SERVICES
    }
    return {name: float(text[:-2]) * _UNITS[text[-2:]] for name, text in given.items()}


if __name__ == "__main__":
    main(__doc__, run)
