"""The gateway: what it adds to a call, what a dead primary costs, and what faults and a kill leave behind."""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles

from openai import AsyncOpenAI, DefaultAioHttpClient

from tests.bench.figures import aim, main, show_middle, table
from tests.bench.models import Models, model_server
from tests.integration.gateway.harness import request, routes_file, run_gateway
from tests.integration.gateway.processes import GatewayProcess, gateway_process
from tests.integration.gateway.scenarios import DEAD, KEYS, SHORT, kill_one, run_mixed_calls
from tests.support.model_server import FaultKind, Latency, ModelServer, Rule

_IN_FLIGHT = (1, 16, 64)
_TOGETHER = 16
_ROUTER_PYTHON = "PARLEY_BENCH_LITELLM_PYTHON"
"""Names the interpreter of an environment of its own with litellm in it, for the comparison."""

Ask = Callable[[int], Awaitable[object]]


async def run(quick: bool) -> None:
    """Run the four parts, one after the other."""
    await _overhead(quick)
    print()
    await _measure_dead_primary()
    print()
    await _measure_mixed(1000 if quick else 10_000)
    print()
    await _measure_killed()


async def _overhead(quick: bool) -> None:
    count, rounds = (200, 2) if quick else (800, 5)
    latency = Latency(0.02)
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        async with (
            model_server() as models,
            gateway_process(models.base_url, f"sqlite:///{folder}", "bench") as gateway,
            AsyncOpenAI(
                base_url=models.base_url, api_key="bench", max_retries=0, http_client=DefaultAioHttpClient()
            ) as client,
        ):
            kinds: dict[str, Ask] = {
                "bare openai client": _make_bare(client),
                "gateway": _make_through(gateway, stored=False),
                "gateway, stored calls": _make_through(gateway, stored=True),
            }
            for at_once in _IN_FLIGHT:
                bare = 0.0
                for name, ask in kinds.items():
                    rates, latencies = await _measure(
                        models, latency, ask, count if at_once > 1 else count // 4, at_once, rounds
                    )
                    middle_ms = median(latencies) * 1000
                    bare = bare or middle_ms
                    added = "" if name.startswith("bare") else f"{middle_ms - bare:.1f}"
                    rows.append([str(at_once), name, show_middle(rates, 0), f"{middle_ms:.1f}", added])
                if os.environ.get(_ROUTER_PYTHON):
                    rows.append(await _router(models, latency, at_once, count, bare))
    table(["in flight", "20 ms model", "calls/s", "median ms", "added ms"], rows)


def _make_bare(client: AsyncOpenAI) -> Ask:
    async def ask(number: int) -> object:
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": f"Bench {number}?"}], stream=True
        )
        return "".join([each.delta.content or "" async for chunk in stream for each in chunk.choices])

    return ask


def _make_through(gateway: GatewayProcess, *, stored: bool) -> Ask:
    unique = time.monotonic_ns()

    async def ask(number: int) -> object:
        nonlocal unique
        unique += 1
        asked = request(f"Bench {number}?", step=f"{unique}" if stored else None)
        async for response in gateway.stub.Generate(asked, timeout=60):
            if response.WhichOneof("event") == "completed":
                return response.completed.text
        raise AssertionError("no answer")

    return ask


async def _measure(
    models: Models, latency: Latency, ask: Ask, count: int, at_once: int, rounds: int
) -> tuple[list[float], list[float]]:
    await models.begin(latency)
    rates: list[float] = []
    latencies: list[float] = []
    for number in range(rounds + 1):
        took: list[float] = []
        began = time.monotonic()
        await _ask_many(ask, count if number else at_once, at_once, took)
        if number:  # the first round warms up
            rates.append(count / (time.monotonic() - began))
            latencies += took
    return rates, latencies


async def _ask_many(ask: Ask, count: int, at_once: int, took: list[float]) -> None:
    numbers = iter(range(count))

    async def ask_in_turn() -> None:
        for number in numbers:
            began = time.monotonic()
            await ask(number)
            took.append(time.monotonic() - began)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(ask_in_turn())


async def _router(models: Models, latency: Latency, at_once: int, count: int, bare_ms: float) -> list[str]:
    """The same calls through litellm's Router, in its own environment and process."""
    await models.begin(latency)
    command = [
        os.environ[_ROUTER_PYTHON],
        str(Path(__file__).with_name("litellm_router.py")),
        models.base_url,
        str(at_once),
        str(count if at_once > 1 else count // 4),
    ]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    rate, middle_ms = (float(word) for word in done.stdout.split()[-2:])
    return [
        str(at_once),
        "litellm Router (no gRPC)",
        f"{rate:.0f}",
        f"{middle_ms:.1f}",
        f"{middle_ms - bare_ms:.1f}",
    ]


async def _measure_dead_primary() -> None:
    rows = []
    for fault in DEAD:
        with tempfile.TemporaryDirectory() as folder:
            one_by_one, added = await _count_reached(Path(folder), Rule(fault=fault), at_once=1)
            together, _ = await _count_reached(Path(folder), Rule(fault=fault), at_once=_TOGETHER)
        # Calls in flight together count as one, and nobody knows of a hang before its time is over: three waves meet it.
        most = 3 * _TOGETHER if fault.kind is FaultKind.HANG else _TOGETHER + 2
        rows.append(
            [
                fault.name,
                f"{one_by_one} ({aim(one_by_one, 3)})",
                f"{together} ({aim(together, most)})",
                f"{added:.1f} ({aim(added, 50)})",
            ]
        )
    in_flight = f"{_TOGETHER} in flight"
    head = ["dead primary", "calls that reached it, one by one", in_flight, "added ms once open, p99"]
    table(head, rows)


async def _count_reached(folder: Path, rule: Rule, at_once: int) -> tuple[int, float]:
    """How many of 200 calls reach a dead primary, and by how much those after it opened are slower than without it."""
    async with ModelServer(rules=[rule]) as first, ModelServer(answer="fine") as second:
        async with run_gateway(
            routes_file(folder, first, second), environment=KEYS, timeouts=SHORT
        ) as gateway:

            async def ask(number: int) -> object:
                return await gateway.ask(request(f"q{number}"))

            await _ask_many(ask, 32, at_once, [])
            took: list[float] = []
            await _ask_many(ask, 200, at_once, took)
            reached = len(first.ledger.calls) + first.ledger.in_flight
        async with run_gateway(routes_file(folder, second), environment=KEYS, timeouts=SHORT) as gateway:
            await _ask_many(ask, 32, at_once, [])
            without: list[float] = []
            await _ask_many(ask, 200, at_once, without)
    return reached, (quantiles(took, n=100)[98] - median(without)) * 1000


async def _measure_mixed(calls: int) -> None:
    before = _resident_mib()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for part in range(4):
            began = time.monotonic()
            outcomes, late = await run_mixed_calls(Path(folder), calls=calls // 4, at_once=32, seed=part)
            took = time.monotonic() - began
            shown = ", ".join(f"{name} {count}" for name, count in outcomes.most_common())
            rows.append([str(calls // 4), shown, str(late), f"{took:.0f}", f"{_resident_mib():.0f}"])
    print(f"memory before: {before:.0f} MiB (tests, gateway and two model servers in one process)\n")
    table(["mixed calls", "how they ended", "past their time", "seconds", "MiB after"], rows)


async def _measure_killed() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cost = await kill_one(f"sqlite:///{folder}")
    rows = [
        ["calls by call_id over two gateways, one killed", str(cost.calls)],
        ["without an answer", str(cost.unanswered)],
        ["in flight at the killed one", str(len(cost.at_killed))],
        ["paid for twice", str(len(cost.paid_again))],
        ["of those not in flight at the killed one", str(len(cost.paid_again - cost.at_killed))],
    ]
    table(["kill -9, SQLite", "number"], rows)


def _resident_mib() -> float:
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    if sys.platform == "win32":
        sys.exit("needs a POSIX system")
    main(__doc__, run)
