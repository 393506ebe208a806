"""Panel debates at 200 ms a call, 3 x 3 and 7 x 5: our span over the bare client's for the same graph of calls."""

from dataclasses import dataclass
from statistics import median

from tests.bench.figures import aim, main, show_middle, table
from tests.bench.graph import Shape, flowing
from tests.bench.spans import measure_bare, measure_ours, open_sides
from tests.support.model_server import Latency

_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class _Case:
    """`words`: of an answer. `times`: debates, the first of which does not count."""

    shape: Shape
    words: int
    aim: float
    times: int


_CASES = (_Case(Shape(3, 3), 24, 1.05, 16), _Case(Shape(7, 5), 370, 1.10, 6))
"""370 words have about 2,500 characters."""


async def run(quick: bool) -> None:
    """Measure each case."""
    for case in _CASES:
        await _measure(case, 3 if quick else case.times)


async def _measure(case: _Case, times: int) -> None:
    """Interleave our debates with the bare client's graphs, and print the ratio of the medians."""
    shape, latency = case.shape, Latency(median=_SECONDS)
    concluded, heard, bare_spans = [], [], []
    async with open_sides(case.words) as (models, client, bare):
        for number in range(times):
            ours = await measure_ours(models, client, shape, latency, f"Bench question {number}?")
            bares = await measure_bare(models, bare, shape, latency, flowing, ours.places)
            if number:  # the first pair opens connections and learns of the endpoint
                concluded.append(ours.concluded)
                heard.append(ours.heard)
                bare_spans.append(bares)
    ratio = median(concluded) / median(bare_spans)
    title = f"span of {shape.size} agents x {shape.rounds} rounds, {case.words} words an answer, at 200 ms"
    in_line = (3 * shape.rounds + 1) * _SECONDS
    table(
        [title, "seconds (lowest-highest)", "over bare", "aim"],
        [
            ["bare client, same graph", show_middle(bare_spans), "1", ""],
            ["ours, to the event `concluded`", show_middle(concluded), f"{ratio:.3f}", aim(ratio, case.aim)],
            [
                "ours, until a watcher has it",
                show_middle(heard),
                f"{median(heard) / median(bare_spans):.3f}",
                "",
            ],
            ["the calls in line, nothing else", f"{in_line:.3f}", f"{in_line / median(bare_spans):.3f}", ""],
        ],
    )


if __name__ == "__main__":
    main(__doc__, run)
