"""CPU a model call takes: the whole embedded system's with its client, and the bare client's."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median

from parley.client import ParleyClient
from tests.bench.figures import main, show_middle, table
from tests.bench.graph import BareClient, Shape, flowing
from tests.bench.models import Models
from tests.bench.spans import measure_ours, open_sides
from tests.bench.system import run_debate, spec
from tests.support.model_server import Latency

_SHAPE = Shape(3, 3)
_AT_ONCE = 4


async def run(quick: bool) -> None:
    """Interleave rounds of debates with rounds of the bare client's graphs, with and without text in pieces."""
    rows = []
    async with open_sides() as (models, client, bare):
        for name, latency, text in (
            ("at once, 0 ms", Latency(), False),
            ("word by word over 200 ms, watched", Latency(median=0.2, first_token_share=0.2), True),
        ):
            ours, bares = await _measure(models, client, bare, latency, rounds=2 if quick else 6, text=text)
            rows.append(
                [name, show_middle(ours, 1), show_middle(bares, 1), f"{median(ours) / median(bares):.2f}"]
            )
    table(["answers come", "ours (ms CPU a call)", "bare (ms CPU a call)", "ours / bare"], rows)


async def _measure(
    models: Models, client: ParleyClient, bare: BareClient, latency: Latency, *, rounds: int, text: bool
) -> tuple[list[float], list[float]]:
    # The bare client asks what a debate asked after some others: by then past debates are recalled.
    for number in range(_AT_ONCE):
        await run_debate(client, spec(_SHAPE, f"Warm {number}? {text}"), text=text)
    replayed = await measure_ours(models, client, _SHAPE, latency, f"Which prompts? {text}")
    ask = bare.over(replayed.places)
    await flowing(_SHAPE, ask)

    async def debate(question: str) -> None:
        await run_debate(client, spec(_SHAPE, question), text=text)

    async def walk(_: str) -> None:
        await flowing(_SHAPE, ask)

    ours, bares = [], []
    for number in range(rounds):
        await models.begin(latency)
        ours.append(await _cpu_of(debate, f"Bench question {number}? {text}"))
        bares.append(await _cpu_of(walk, ""))
    return ours, bares


async def _cpu_of(work: Callable[[str], Awaitable[None]], question: str) -> float:
    """Return milliseconds of this process's CPU a model call, with some debates in flight."""
    began = time.process_time()
    await asyncio.gather(*[work(f"{question} {number}") for number in range(_AT_ONCE)])
    return (time.process_time() - began) * 1000 / (_AT_ONCE * _SHAPE.calls)


if __name__ == "__main__":
    main(__doc__, run)
