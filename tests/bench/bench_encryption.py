"""What encryption costs debates: as many in a system with a key as in one without, in interleaved pairs, by the CPU of this process."""

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from parley.client import ParleyClient
from tests.bench.figures import main, show_middle, table
from tests.bench.graph import Shape
from tests.bench.models import model_server
from tests.bench.system import run_debate, spec, system
from tests.support.encryption import write_key
from tests.support.model_server import Latency

_AT_ONCE = 4
_LATENCY = Latency(0.02)


async def run(quick: bool) -> None:
    """Hold rounds of debates in a plain system and in an encrypted one in turn."""
    pairs, shape = (6 if quick else 20), Shape(3, 1)
    async with AsyncExitStack() as stack:
        key = write_key(Path(stack.enter_context(tempfile.TemporaryDirectory()), "key"))
        models = await stack.enter_async_context(model_server())
        plain = await stack.enter_async_context(system(models.base_url))
        encrypted = await stack.enter_async_context(system(models.base_url, PARLEY_ENCRYPTION_KEYS=str(key)))
        await models.begin(_LATENCY)
        taken: dict[ParleyClient, list[float]] = {plain: [], encrypted: []}
        for number in range(pairs + 1):
            for client in (plain, encrypted) if number % 2 else (encrypted, plain):
                taken[client].append(await _hold(client, shape))
    without, with_key = (each[1:] for each in taken.values())  # the first round warms up
    ratios = [slow / quick for quick, slow in zip(without, with_key, strict=True)]
    table(
        ["", "seconds of CPU a debate", "ratio"],
        [
            ["without a key", show_middle(without), ""],
            ["with a key in a file", show_middle(with_key), show_middle(ratios)],
        ],
    )
    print(f"\n{pairs} pairs of {_AT_ONCE} debates at a time, 3 agents and 1 round each.")


async def _hold(client: ParleyClient, shape: Shape) -> float:
    """Return the seconds of CPU that a debate took: the system's, with those of its client."""
    spent = time.process_time()
    async with asyncio.TaskGroup() as tasks:
        for number in range(_AT_ONCE):
            tasks.create_task(run_debate(client, spec(shape, f"Bench question {number}?")))
    return (time.process_time() - spent) / _AT_ONCE


if __name__ == "__main__":
    main(__doc__, run)
