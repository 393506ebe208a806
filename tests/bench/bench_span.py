"""A 3 x 3 panel debate at 200 ms a call: our span over the bare client's for the same graph of calls."""

from statistics import median

from tests.bench.environment import MODEL
from tests.bench.figures import aim, main, middle, table
from tests.bench.graph import Shape, bare_client, flowing
from tests.bench.models import model_server
from tests.bench.spans import measure_bare, measure_ours
from tests.bench.system import system
from tests.support.model_server import Latency

_AIM = 1.05


async def run(quick: bool) -> None:
    """Interleave our debates with the bare client's graphs, and print the ratio of the medians."""
    shape, latency = Shape(3, 3), Latency(median=0.2)
    concluded, heard, bare_spans = [], [], []
    async with (
        model_server() as models,
        system(models.base_url) as client,
        bare_client(models.base_url, MODEL) as bare,
    ):
        for number in range(4 if quick else 16):
            ours = await measure_ours(models, client, shape, latency, f"Bench question {number}?")
            bares = await measure_bare(models, bare, shape, latency, flowing, ours.places)
            if number:  # the first pair opens connections and learns of the endpoint
                concluded.append(ours.concluded)
                heard.append(ours.heard)
                bare_spans.append(bares)
    ratio = median(concluded) / median(bare_spans)
    table(
        ["span of 3 agents x 3 rounds at 200 ms", "seconds (lowest-highest)", "over bare", "aim"],
        [
            ["bare client, same graph", middle(bare_spans), "1", ""],
            ["ours, to the event `concluded`", middle(concluded), f"{ratio:.3f}", aim(ratio, _AIM)],
            [
                "ours, until a watcher has it",
                middle(heard),
                f"{median(heard) / median(bare_spans):.3f}",
                "",
            ],
            ["ten calls in line, nothing else", "2.000", f"{2 / median(bare_spans):.3f}", ""],
        ],
    )


if __name__ == "__main__":
    main(__doc__, run)
