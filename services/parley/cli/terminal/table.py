"""Rows as a table on stdout."""

import shutil
import sys
from collections.abc import Sequence
from typing import Final

from parley.cli.printing import print_line
from parley.runtime.printable import printable_line

__all__ = ["is_narrow", "print_table"]

_NARROW: Final = 100
_GAP: Final = 2
_MIN_WIDTH: Final = 8
"""Columns that the last cell keeps, however narrow the terminal is."""


def is_narrow() -> bool:
    """Return whether stdout is a terminal with little room beside one another."""
    return sys.stdout.isatty() and shutil.get_terminal_size().columns < _NARROW


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of equal length, the first of which is the heading, in columns as wide as they need.

    On a terminal the last column is cut to its width, and where it would have no room, those before it are left out;
    elsewhere everything is there.
    """
    from rich.cells import cell_len, set_cell_size  # heavy: help needs none of it

    rows = [[printable_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        rows = _drop_columns(rows, shutil.get_terminal_size().columns)
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(rows[0]))]
    if sys.stdout.isatty():
        left = shutil.get_terminal_size().columns - sum(width + _GAP for width in widths[:-1])
        widths[-1] = min(widths[-1], max(left, _MIN_WIDTH))
    for row in rows:
        cells = [set_cell_size(cell, width) for cell, width in zip(row[:-1], widths, strict=False)]
        last = row[-1]
        if cell_len(last) > widths[-1]:
            last = f"{set_cell_size(last, widths[-1] - 1).rstrip()}…"
        print_line((" " * _GAP).join([*cells, last]).rstrip())


def _drop_columns(rows: Sequence[Sequence[str]], columns: int) -> Sequence[Sequence[str]]:
    """Return the rows without the columns, from the last but one on, that leave the last one no room."""
    from rich.cells import cell_len

    while len(rows[0]) > 2:
        taken = sum(max(cell_len(row[place]) for row in rows) + _GAP for place in range(len(rows[0]) - 1))
        if taken + _MIN_WIDTH <= columns:
            break
        rows = [[*row[:-2], row[-1]] for row in rows]
    return rows
