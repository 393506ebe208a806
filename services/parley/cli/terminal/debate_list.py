"""Debates as rows of a table."""

from collections.abc import Sequence
from typing import Final

from parley.cli.terminal.debate_overview import status_text
from parley.cli.terminal.shorten import one_line
from parley.cli.terminal.words import local_time_text
from parley.client import DebateSummary

__all__ = ["debate_rows"]

_QUESTION_WIDTH: Final = 200


def debate_rows(found: Sequence[DebateSummary], *, interrupted: bool, narrow: bool) -> list[tuple[str, ...]]:
    """Return a row for each debate below a heading.

    `interrupted` where nobody is there to run what should run; `narrow` leaves out the time, which the id tells too.
    """
    rows: list[tuple[str, ...]] = [("ID", "STATUS", "CREATED", "QUESTION")]
    for each in found:
        status = status_text(each.status, interrupted=interrupted)
        rows.append(
            (each.id, status, local_time_text(each.create_time), one_line(each.question, _QUESTION_WIDTH))
        )
    return [(row[0], row[1], row[3]) for row in rows] if narrow else rows
