"""Text cut to a width."""

from parley.runtime.printable import printable, printable_line

__all__ = ["first_line", "one_line"]


def one_line(text: str, width: int) -> str:
    """Return the text on one line, cut to the width."""
    return _cut(printable_line(text), width)


def first_line(text: str, width: int) -> str:
    """Return the first line that is not blank, cut to the width; empty where there is none."""
    return _cut(next((line.strip() for line in printable(text).splitlines() if line.strip()), ""), width)


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"
