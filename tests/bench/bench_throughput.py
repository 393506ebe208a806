"""Debates a second where the model answers at once, and where the time goes."""

import asyncio
import cProfile
import pstats
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import PurePath

from parley.client import ParleyClient
from tests.bench.environment import MODEL
from tests.bench.figures import main, middle, table
from tests.bench.graph import Ask, Shape, bare_client, flowing
from tests.bench.models import model_server
from tests.bench.spans import measure_ours
from tests.bench.system import run_debate, spec, system
from tests.support.model_server import Latency

_AT_ONCE = 16
_SHOWN = 12


async def run(quick: bool) -> None:
    """Keep many debates in flight, then the bare client's graphs of the same calls, then profile ours."""
    rows = []
    async with (
        model_server() as models,
        system(models.base_url) as client,
        bare_client(models.base_url, MODEL) as bare,
    ):
        for shape, count in ((Shape(3, 1), 32), (Shape(3, 3), 16)):
            opened = await measure_ours(models, client, shape, Latency(), "Which prompts?")
            ask = bare.over(opened.places)
            await flowing(shape, ask)
            ours, bares = [], []
            for _ in range(2 if quick else 5):
                await models.begin(Latency())
                ours.append(await _timed(count, _debating(client, shape)))
                bares.append(await _timed(count, _walking(shape, ask)))
            name = f"{shape.size} agents x {shape.rounds} rounds ({shape.calls} calls)"
            rows += [_row(f"ours, {name}", shape, ours), _row(f"bare, {name}", shape, bares)]
        shares = await _profiled(client, Shape(3, 3), 4 if quick else 12)
    table(
        [
            f"0 ms, {_AT_ONCE} in flight",
            "debates/s",
            "calls/s",
            "cores this process got",
            "debates/s and core",
        ],
        rows,
    )
    print()
    table(["part of ours", "share of the event loop's thread"], shares)


@dataclass(frozen=True, slots=True)
class _Timed:
    """How many debates took how many seconds, and how much of this process's CPU."""

    amount: int
    seconds: float
    cpu: float


def _row(name: str, shape: Shape, timed: list[_Timed]) -> list[str]:
    return [
        name,
        middle([each.amount / each.seconds for each in timed], 1),
        middle([each.amount * shape.calls / each.seconds for each in timed], 0),
        middle([each.cpu / each.seconds for each in timed], 2),
        middle([each.amount / each.cpu for each in timed], 1),
    ]


def _debating(client: ParleyClient, shape: Shape) -> Callable[[str], Awaitable[object]]:
    async def debate(question: str) -> object:
        return await run_debate(client, spec(shape, question))

    return debate


def _walking(shape: Shape, ask: Ask) -> Callable[[str], Awaitable[object]]:
    async def walk(_: str) -> None:
        await flowing(shape, ask)

    return walk


async def _timed(amount: int, work: Callable[[str], Awaitable[object]]) -> _Timed:
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int) -> None:
        async with places:
            await work(f"Bench question {number}?")

    began, cpu = time.monotonic(), time.process_time()
    async with asyncio.TaskGroup() as tasks:
        for number in range(amount):
            tasks.create_task(one(number))
    return _Timed(amount, time.monotonic() - began, time.process_time() - cpu)


async def _profiled(client: ParleyClient, shape: Shape, amount: int) -> list[list[str]]:
    profile = cProfile.Profile()
    profile.enable()
    await _timed(amount, _debating(client, shape))
    profile.disable()
    parts: Counter[str] = Counter()
    for (file, _, function), (_, _, own, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        parts[_part(file, function)] += own
    parts.pop("waiting", None)
    whole = sum(parts.values())
    return [[name, f"{own / whole:.0%}"] for name, own in parts.most_common(_SHOWN)]


def _part(file: str, function: str) -> str:
    """Return the package, or the room of Parley, that a function belongs to."""
    if file == "~":  # built in
        return "waiting" if "poll" in function else "built-in functions"
    path = PurePath(file).parts
    if "parley" in path:
        return "parley/" + path[len(path) - 1 - path[::-1].index("parley") + 1].removesuffix(".py")
    if "site-packages" in path:
        return path[path.index("site-packages") + 1]
    return next((name for name in ("asyncio", "json") if name in path), "standard library")


if __name__ == "__main__":
    main(__doc__, run)
