"""Positions: the one-sentence stand that a proposal or refinement states at its end."""

import re

__all__ = ["POSITION_INSTRUCTION", "position_of"]

POSITION_INSTRUCTION = "End with one line `Position: ` followed by your stand in one sentence."

_POSITION = re.compile(r"^[ \t>*_#-]*position[ \t*_]*:(?P<stand>[^\n]*)$", re.IGNORECASE | re.MULTILINE)
_LONGEST = 500


def position_of(text: str) -> str:
    """Return the last stated position, at most 500 characters; empty where the text states none."""
    # Stripped here: the same in the pattern would take quadratic time on a long line of blanks.
    stated = [found["stand"].strip(" \t\r*_") for found in _POSITION.finditer(text)]
    return next((each[:_LONGEST] for each in reversed(stated) if each), "")
