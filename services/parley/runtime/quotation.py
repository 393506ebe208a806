"""Quotation marks around texts of others, which no text can close."""

import re
from typing import Final

_LEAST: Final = 3
_CLOSING: Final = re.compile(">+")


def quote_in_marks(text: str, longest: int = 0) -> str:
    """Return the text between a line of `<` and a line of as many `>`, more than stand together anywhere in it.

    `longest` is the longest run of `>` in what is put into the text later.
    """
    width = max(_LEAST, longest_run(text) + 1, longest + 1)
    return f"{'<' * width}\n{text}\n{'>' * width}"


def longest_run(text: str) -> int:
    """Return the length of the longest run of `>`. It only looks at longer runs than before: a text may have millions of them."""
    longest, place = 0, text.find(">")
    while place >= 0:
        found = _CLOSING.match(text, place)
        assert found is not None
        longest = found.end() - place
        place = text.find(">" * (longest + 1), found.end())
    return longest
