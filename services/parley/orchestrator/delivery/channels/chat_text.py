"""Texts of others as chats show them: escaped, and cut to what a chat takes."""

from collections.abc import Mapping, Sequence
from typing import Final

from parley.runtime.printable import printable

Links = Sequence[tuple[str, str]]
"""Links of ours: what is shown of each, and its URL."""

_CUT: Final = "…"


def split_text(text: str) -> tuple[str, str]:
    """Return the first line of a text, and what follows it."""
    title, _, rest = printable(text).strip().partition("\n")
    return title.strip(), rest.strip()


def fit(text: str, maximum: int, escapes: Mapping[str, str] | None = None) -> str:
    """Return as much of the beginning of a text as has at most `maximum` units of UTF-16 once its characters are escaped.

    Chats count characters, and not all count those outside of the Basic Multilingual Plane as one.
    """
    escapes = escapes or {}
    pieces: list[str] = []
    room = maximum
    for each in text:
        pieces.append(escapes.get(each, each))
        room -= _count_units(pieces[-1])
        if room < 0:
            break
    else:
        return "".join(pieces)
    while room < len(_CUT):  # an escape goes whole
        room += _count_units(pieces.pop())
    return "".join(pieces) + _CUT


def _count_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
