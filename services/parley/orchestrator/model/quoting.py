"""Marks around what others wrote, which nothing in it can close."""

from typing import Final

__all__ = ["between_marks"]

_LEAST: Final = 3


def between_marks(text: str) -> str:
    """Return the text between a line of `<` and a line of as many `>`, more than stand together anywhere in it."""
    width = _LEAST
    while ">" * width in text:
        width += 1
    return f"{'<' * width}\n{text}\n{'>' * width}"
