"""Positions: the one-sentence stand that a proposal or refinement states at its end."""

import re

POSITION_INSTRUCTION = "End with one line `Position: ` followed by your stand in one sentence."
POSITION_FORM = "One line `Position: ` followed by your stand in one sentence."
"""Where something else is to follow it."""

POSITION_LINE = re.compile(
    r"^[ \t>*_#-]*(?:\d{1,2}[.)][ \t*_]*)?position[ \t*_]*:(?P<stand>[^\n]*)$", re.IGNORECASE | re.MULTILINE
)
"""A line that states a position."""
_CITATION = re.compile(r"[ \t]{0,2}\[S\d{1,4}\]")
_MAX_CHARACTERS = 500


def position_of(text: str) -> str:
    """Return the last stated position without citations, at most 500 characters; empty if the text states none."""
    # Stripped here: the same in the pattern would take quadratic time on a long line of blanks.
    stated = [_CITATION.sub("", found["stand"]).strip(" \t\r*_") for found in POSITION_LINE.finditer(text)]
    return next((each[:_MAX_CHARACTERS] for each in reversed(stated) if each), "")
