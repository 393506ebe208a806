"""What it gains that phases flow: our span over the same graph with a barrier after every phase."""

from statistics import median

from tests.bench.figures import aim, main, show_middle, table
from tests.bench.graph import Shape, stepped
from tests.bench.spans import measure_bare, measure_ours, open_sides
from tests.support.model_server import Latency

_AIMS = {True: 0.88, False: 0.80}


async def run(quick: bool) -> None:
    """Hold a debate a seed, replay it with barriers, and print the median of the ratios."""
    rows = []
    async with open_sides() as (models, client, bare):
        warm = Shape(5, 1)
        opened = await measure_ours(models, client, warm, Latency(), "Bench question?")
        await measure_bare(models, bare, warm, Latency(), stepped, opened.places)
        for full_history, most in _AIMS.items():
            shape = Shape(5, 3, full_history=full_history)
            ours_spans, bare_spans = [], []
            for seed in range(5 if quick else 20):
                latency = Latency(median=0.2, sigma=0.6, seed=seed)
                ours = await measure_ours(models, client, shape, latency, f"Bench question {seed}?")
                ours_spans.append(ours.concluded)
                bare_spans.append(await measure_bare(models, bare, shape, latency, stepped, ours.places))
            ratios = [ours / bares for ours, bares in zip(ours_spans, bare_spans, strict=True)]
            name = "full history" if full_history else "own line only"
            rows.append(
                [
                    name,
                    show_middle(ours_spans),
                    show_middle(bare_spans),
                    show_middle(ratios),
                    aim(median(ratios), most),
                ]
            )
    table(
        ["5 agents x 3 rounds, log-normal", "ours (s)", "bare with barriers (s)", "ours / bare", "aim"], rows
    )


if __name__ == "__main__":
    main(__doc__, run)
