"""Debates a second if the model answers at once, beside the bare `openai` client and the raw floor, and where the time goes."""

import asyncio
import cProfile
import os
import pstats
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from statistics import median
from typing import NamedTuple

from parley.client import ParleyClient
from tests.bench.environment import MODEL
from tests.bench.figures import main, show_middle, table
from tests.bench.graph import Ask, BareClient, Shape, flowing
from tests.bench.models import Models
from tests.bench.raw_floor import RawFloor, raw_floor
from tests.bench.spans import measure_ours, open_sides
from tests.bench.system import run_debate, spec
from tests.support.model_server import Latency
from tests.support.process_status import peak_bytes, resident_bytes

_AT_ONCE = 16
_SHOWN = 12
_LEAST = 0.1
"""Milliseconds a debate below which a thread is not shown."""


async def run(quick: bool) -> None:
    """Keep many debates in flight, then the graphs of the same calls of a bare client and of the raw floor; then profile ours."""
    turns = 2 if quick else 5
    with tempfile.TemporaryDirectory() as folder:
        async with (
            open_sides() as (models, client, bare),
            raw_floor(models.base_url, MODEL, Path(folder)) as floor,
        ):
            resting = resident_bytes(os.getpid()) / 2**20
            sides = _Sides(models, client, bare, floor)
            small = await sides.measure(Shape(3, 1), 32, turns)
            large = await sides.measure(Shape(3, 3), 16, turns)
            shares = await _profiled(client, Shape(3, 3), 4 if quick else 12)
    head = ["debates/s", "calls/s", "cores this process got", "ms of CPU a debate"]
    table([f"0 ms, {_AT_ONCE} in flight", *head], [*_rows(Shape(3, 1), small), *_rows(Shape(3, 3), large)])
    print()
    table(["thread of ours, 3 agents x 1 rounds", "ms of CPU a debate"], _sum_threads(small["ours"]))
    print()
    table(
        ["memory", "MiB"],
        [["at rest", f"{resting:.0f}"], ["most of this run", f"{peak_bytes(os.getpid()) / 2**20:.0f}"]],
    )
    print()
    table(["part of ours", "share of the event loop's thread"], shares)


@dataclass(frozen=True, slots=True)
class _Sides:
    """What is compared, over one model server."""

    models: Models
    client: ParleyClient
    bare: BareClient
    floor: RawFloor

    async def measure(self, shape: Shape, count: int, turns: int) -> "dict[str, list[_Timed]]":
        """Return the turns of each side, which take turns; what warms up is not among them."""
        opened = await measure_ours(self.models, self.client, shape, Latency(), "Which prompts?")
        sides = {
            "ours": _debating(self.client, shape),
            "bare `openai`": _walking(shape, partial(self.bare.over, opened.places)),
            "raw floor": _walking(shape, partial(self.floor.over, opened.places)),
        }
        taken: dict[str, list[_Timed]] = {name: [] for name in sides}
        for _ in range(turns + 1):
            for name, work in sides.items():
                await self.models.begin(Latency())
                taken[name].append(await _timed(count, work))
        return {name: timed[1:] for name, timed in taken.items()}


@dataclass(frozen=True, slots=True)
class _Timed:
    """How many debates took how many seconds, and how much of this process's CPU, by thread in nanoseconds."""

    amount: int
    seconds: float
    cpu: float
    by_thread: Counter[str]


class _Thread(NamedTuple):
    """A thread; those of one pool share a name."""

    name: str
    number: str


def _rows(shape: Shape, sides: dict[str, list[_Timed]]) -> list[list[str]]:
    return [
        [
            f"{name}, {shape.size} agents x {shape.rounds} rounds ({shape.calls} calls)",
            show_middle([each.amount / each.seconds for each in timed], 1),
            show_middle([each.amount * shape.calls / each.seconds for each in timed], 0),
            show_middle([each.cpu / each.seconds for each in timed], 2),
            show_middle([1000 * each.cpu / each.amount for each in timed], 1),
        ]
        for name, timed in sides.items()
    ]


def _debating(client: ParleyClient, shape: Shape) -> Callable[[str], Awaitable[object]]:
    async def debate(question: str) -> object:
        return await run_debate(client, spec(shape, question))

    return debate


def _walking(shape: Shape, over: Callable[[], Ask]) -> Callable[[str], Awaitable[object]]:
    async def walk(_: str) -> None:
        await flowing(shape, over())

    return walk


async def _timed(amount: int, work: Callable[[str], Awaitable[object]]) -> _Timed:
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int) -> None:
        async with places:
            await work(f"Bench question {number}?")

    began, cpu, before = time.monotonic(), time.process_time(), _cpu_by_thread()
    async with asyncio.TaskGroup() as tasks:
        for number in range(amount):
            tasks.create_task(one(number))
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    by_thread = Counter[str]()
    for thread, used in _cpu_by_thread().items():
        by_thread[thread.name] += used - before.get(thread, 0)
    return _Timed(amount, seconds, cpu, by_thread)


def _cpu_by_thread() -> "dict[_Thread, int]":
    """Return the nanoseconds of CPU of each thread so far (Linux only)."""
    names = {str(each.native_id): each.name.rstrip("_-0123456789") for each in threading.enumerate()}
    used = {}
    for folder in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it may end meanwhile
            name = names.get(folder.name, "threads of libraries")
            used[_Thread(name, folder.name)] = int((folder / "schedstat").read_text().split()[0])
    return used


def _sum_threads(timed: list[_Timed]) -> list[list[str]]:
    """Return the median milliseconds a debate of each thread's name, most first."""
    names = {name for each in timed for name in each.by_thread}
    used = {name: [each.by_thread[name] / 1e6 / each.amount for each in timed] for name in names}
    shown = sorted(used, key=lambda name: -median(used[name]))
    return [[name, show_middle(used[name], 1)] for name in shown if median(used[name]) >= _LEAST]


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
