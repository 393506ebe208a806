"""CPU a debate of this checkout and of another one, by turns in one run against one model server.

`python -m tests.bench.beside CHECKOUT [BATCHES]`; CHECKOUT has a `.venv` of its own.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from tests.bench.graph import Shape
from tests.bench.models import model_server
from tests.bench.system import run_debate, spec, system
from tests.support.model_server import Latency

_SHAPE = Shape(3, 1)
_BATCH = 20
"""Debates of a batch; a batch of one checkout follows one of the other."""
_AT_ONCE = 8
_HERE = Path(__file__).resolve().parents[2]


async def compare(other: Path, batches: int) -> None:
    """Print the medians of both checkouts, and of the ratios of neighbouring batches."""
    # Not at the top: an arm runs this file with the modules of its own checkout, which may be older.
    from tests.bench.figures import show_middle, table

    async with model_server() as models:
        arms = [_start(each, models.base_url) for each in (other, _HERE)]
        taken: list[list[float]] = [[], []]
        for number in range(batches + 1):
            for place in (0, 1) if number % 2 else (1, 0):
                await models.begin(Latency())
                milliseconds = await asyncio.to_thread(_run_batch, arms[place])
                if number:  # the first batch warms up
                    taken[place].append(milliseconds)
        for arm in arms:
            arm.communicate()
    ratio = median(ours / theirs for theirs, ours in zip(*taken, strict=True))
    rows = [[name, show_middle(each, 1)] for name, each in zip(("there", "here"), taken, strict=True)]
    table(["checkout", "ms CPU a debate"], [*rows, ["here / there", f"{ratio:.3f}"]])


def _start(checkout: Path, base_url: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(checkout / ".venv/bin/python"), __file__, "--arm", base_url],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _run_batch(arm: "subprocess.Popen[str]") -> float:
    assert arm.stdin is not None
    assert arm.stdout is not None
    print(file=arm.stdin, flush=True)
    return float(json.loads(arm.stdout.readline()))


async def _serve_batches(base_url: str) -> None:
    """Hold a batch of debates for each line that comes, and print its milliseconds of CPU a debate."""
    async with system(base_url) as client:
        number = 0
        while await asyncio.to_thread(sys.stdin.readline):
            places = asyncio.Semaphore(_AT_ONCE)

            async def hold(question: str, places: asyncio.Semaphore = places) -> None:
                async with places:
                    await run_debate(client, spec(_SHAPE, question))

            began = time.process_time()
            async with asyncio.TaskGroup() as tasks:
                for _ in range(_BATCH):
                    number += 1
                    tasks.create_task(hold(f"Bench question {number}?"))
            print(json.dumps((time.process_time() - began) * 1000 / _BATCH), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--arm":
        asyncio.run(_serve_batches(sys.argv[2]))
    else:
        asyncio.run(compare(Path(sys.argv[1]).resolve(), int((sys.argv[2:] or ["5"])[0])))
