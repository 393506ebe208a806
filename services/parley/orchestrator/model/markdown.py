"""The pieces of a page in CommonMark that shows what others wrote: nothing of theirs can reach out of its place."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from parley.orchestrator.model.harmless_text import to_safe_markdown

__all__ = ["inline", "list_item", "moment", "quote", "span", "table"]

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|#~&])")


def inline(text: str) -> str:
    """Return text on one line in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def quote(text: str) -> str:
    """Return text in a block quote, without the markup that would reach out of it; blank lines around it are left out."""
    lines = to_safe_markdown(text).split("\n")
    return "\n".join(f"> {line}" if line else ">" for line in lines)


def list_item(text: str) -> str:
    """Return a list item, without the markup that would reach out of it; the lines after the first are indented."""
    first, *rest = to_safe_markdown(text).split("\n")
    if first and not first.strip("- \t"):
        first = f"\\{first}"  # after the item's own dash, nothing but dashes would be a line across the page
    return "\n".join([f"- {first}", *(f"  {line}" if line.strip() else "" for line in rest)])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells hold no markup."""
    lines = [head, ["---"] * len(head), *([inline(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def moment(time: datetime) -> str:
    """Return a date and time in UTC, to the second."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(span: timedelta) -> str:
    """Return how long something took, such as `4.2 s` or `1 h 2 min 3 s`."""
    seconds = span.total_seconds()
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"
