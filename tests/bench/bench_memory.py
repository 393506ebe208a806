"""Memory of the whole embedded system while it holds one debate after the other: what each leaves behind."""

import asyncio
import gc
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from parley.client import ParleyClient
from parley.local import LocalOptions, local_system
from tests.bench.environment import use_environment
from tests.bench.figures import main, table
from tests.bench.graph import Shape
from tests.bench.models import model_server
from tests.bench.system import run_debate, spec

_SHAPE = Shape(2, 1)
_AT_ONCE = 4
_FIRST, _STEPS = 200, 6
_LAST = 2_000
_CACHED_VECTORS = 100
"""So few that the cache of vectors is full before the first look; with its default it fills for thousands of debates."""
_QUICK_FIRST, _QUICK_LAST = 40, 200


@dataclass(frozen=True, slots=True)
class Held:
    """After so many debates: Python's objects, its blocks of memory, and the bytes that the kernel says the process has."""

    debates: int
    objects: int
    blocks: int
    anonymous: int
    files: int


async def run(quick: bool) -> None:
    """Hold debates, and look at the memory after the first ones and then at equal distances."""
    first, last = (_QUICK_FIRST, _QUICK_LAST) if quick else (_FIRST, _LAST)
    marks = [first + (last - first) * step // _STEPS for step in range(_STEPS + 1)]
    held = []
    async with model_server() as models, _system(models.base_url) as client:
        for before, mark in pairwise([0, *marks]):
            await hold(client, range(before, mark))
            held.append(measure(mark))
            print(held[-1], file=sys.stderr, flush=True)  # a long run that is stopped is not for nothing
    table(
        ["debates held", "objects", "blocks", "anonymous memory (MiB)", "mapped files (MiB)"],
        [
            [
                f"{each.debates:,}",
                f"{each.objects:,}",
                f"{each.blocks:,}",
                _mib(each.anonymous),
                _mib(each.files),
            ]
            for each in held
        ],
    )


@asynccontextmanager
async def _system(base_url: str) -> AsyncIterator[ParleyClient]:
    with tempfile.TemporaryDirectory() as folder:
        use_environment(Path(folder), base_url)
        os.environ["PARLEY_EMBEDDING_CACHE"] = str(_CACHED_VECTORS)
        async with (
            local_system(LocalOptions()) as running,
            ParleyClient(running.orchestrator_address) as client,
        ):
            yield client


async def hold(client: ParleyClient, numbers: range) -> None:
    """Ask for debates, a few at once, and follow each to its end."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def hold_one(number: int) -> None:
        async with places:
            await run_debate(client, spec(_SHAPE, f"Bench question {number}?"))

    async with asyncio.TaskGroup() as tasks:
        for number in numbers:
            tasks.create_task(hold_one(number))


def measure(debates: int) -> Held:
    """Return the memory that is held now, after the garbage is collected."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return Held(
        debates,
        len(gc.get_objects()),
        sys.getallocatedblocks(),
        _bytes(status["RssAnon"]),
        _bytes(status["RssFile"]),
    )


def _bytes(kilobytes: str) -> int:
    return int(kilobytes.split(maxsplit=1)[0]) * 1024


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f}"


if __name__ == "__main__":
    main(__doc__, run)
