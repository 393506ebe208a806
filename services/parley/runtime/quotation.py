"""Marks around what others wrote, which nothing in it can close."""

import re
from typing import Final

__all__ = ["between_marks"]

_LEAST: Final = 3
_CLOSING: Final = re.compile(">+")


def between_marks(text: str) -> str:
    """Return the text between a line of `<` and a line of as many `>`, more than stand together anywhere in it."""
    longest = max((found.end() - found.start() for found in _CLOSING.finditer(text)), default=0)
    width = max(_LEAST, longest + 1)
    return f"{'<' * width}\n{text}\n{'>' * width}"
