"""What every benchmark shares: its arguments, its table, and the spread of its figures."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from statistics import median


def main(doc: str | None, run: Callable[[bool], Awaitable[None]]) -> None:
    """Run a benchmark as a process; `--quick` makes fewer repetitions."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    arguments = parser.parse_args()

    async def run_awaited() -> None:
        await run(arguments.quick)

    asyncio.run(run_awaited())


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    print(_line(head, widths))
    print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for row in rows:
        print(_line(row, widths))


def show_middle(values: Sequence[float], digits: int = 3) -> str:
    """Return the median, and lowest and highest in brackets."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def aim(value: float, most: float) -> str:
    """Return an upper bound, and whether the value keeps to it."""
    return f"<= {most:g}: {'met' if value <= most else 'missed'}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
