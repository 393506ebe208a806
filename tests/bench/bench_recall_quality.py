"""Recall of the labelled questions by ours, by plain cosine and by plain BM25, on the open half and on the held-out one."""

from tests.bench.figures import main, table
from tests.support.labelled_recall import measure


async def run(quick: bool) -> None:
    """Print the table; a quick run leaves the held-out half out."""
    rows = []
    for half in ("open",) if quick else ("open", "held-out"):
        for way, found in measure(half).items():
            rows.append(
                [
                    half,
                    way,
                    f"{found.recall:.3f}",
                    f"{found.reciprocal_rank:.3f}",
                    f"{found.silent} of 10",
                ]
            )
    table(["half", "by", "recall@5", "MRR", "silent without an answer"], rows)


if __name__ == "__main__":
    main(__doc__, run)
