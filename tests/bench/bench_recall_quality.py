"""Recall of the labelled questions by ours, by plain cosine and by plain BM25, on the open half, on its questions in other words, and on the held-out half."""

from tests.bench.figures import main, table
from tests.support.labelled_recall import measure


async def run(quick: bool) -> None:
    """Print the table; a quick run leaves the held-out half out."""
    rows = []
    for half in ("open", "reworded") if quick else ("open", "reworded", "held-out"):
        for way, found in measure(half).items():
            rows.append(
                [
                    half,
                    way,
                    f"{found.recall:.3f}",
                    f"{found.reciprocal_rank:.3f}",
                    f"{found.silent} of {found.unanswered}",
                ]
            )
    table(["half", "by", "recall@5", "MRR", "silent without an answer"], rows)


if __name__ == "__main__":
    main(__doc__, run)
