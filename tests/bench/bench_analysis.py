"""The analysis after the answer: the time to the answer with it and without, in pairs by turns."""

import time
from statistics import median
from typing import Final

from parley.client import DebateSpec, ParleyClient
from tests.bench.figures import aim, main, show_middle, table
from tests.bench.graph import Shape
from tests.bench.models import model_server
from tests.bench.system import run_debate, spec, system
from tests.support.model_server import Latency

_SHAPE: Final = Shape(3, 2)
_LATENCY: Final = Latency(median=0.1)
_PAIRS: Final = 20
_AIM: Final = 1.05


async def run(quick: bool) -> None:
    """Hold pairs of debates, of which the first does not count: it opens connections and learns of the endpoint."""
    without: list[float] = []
    analysed: list[float] = []
    async with model_server(24) as models, system(models.base_url) as client:
        for number in range(1 + (5 if quick else _PAIRS)):
            pair = [(without, False), (analysed, True)]
            for seconds, is_analysed in pair if number % 2 else pair[::-1]:
                await models.begin(_LATENCY)
                made = spec(_SHAPE, f"Bench question {number}, {is_analysed}?")
                made.analysis = is_analysed
                took = await _seconds_to_answer(client, made)
                if number:
                    seconds.append(took)
    ratios = [one / other for one, other in zip(analysed, without, strict=True)]
    ratio = median(analysed) / median(without)
    table(
        ["3 agents x 2 rounds at 100 ms", "seconds to the answer (lowest-highest)", "over without", "aim"],
        [
            ["without an analysis", show_middle(without), "1", ""],
            ["with one", show_middle(analysed), f"{ratio:.3f}", aim(round(ratio, 3), _AIM)],
            ["the pairs' ratios", show_middle(ratios), "", ""],
        ],
    )


async def _seconds_to_answer(client: ParleyClient, debate: DebateSpec) -> float:
    started = time.monotonic()
    return (await run_debate(client, debate)).heard - started


if __name__ == "__main__":
    main(__doc__, run)
