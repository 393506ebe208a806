"""What a person may have meant by a word that is not known."""

import difflib
from collections.abc import Iterable
from typing import Final

__all__ = ["nearest"]

_NEAR: Final = 0.7
"""How like two words are, 0 to 1, if one may be meant by the other."""


def nearest(written: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like the one written; None where none is like it."""
    return next(iter(difflib.get_close_matches(written.lower(), known, 1, _NEAR)), None)
