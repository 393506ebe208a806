"""Positions: the one-sentence stand that a proposal or refinement states at its end."""

import re

from parley.orchestrator.model.sources import name_sources

POSITION_INSTRUCTION = "End with one line `Position: ` followed by your stand in one sentence."
POSITION_FORM = "One line `Position: ` followed by your stand in one sentence."
"""Where something else is to follow it."""

_STATED = r"[ \t>*_#-]*(?:\d{1,2}[.)][ \t*_]*)?position[ \t*_]*:(?P<stand>[^\n]*)"
POSITION_LINE = re.compile(rf"^{_STATED}$", re.IGNORECASE | re.MULTILINE)
"""A line that states a position."""
_AFTER_LINE_BREAK = re.compile(rf"\n{_STATED}", re.IGNORECASE)
"""The same, found four times as fast in long lines: only what follows a line break is looked at."""
_MAX_CHARACTERS = 500


def position_of(text: str) -> str:
    """Return the last stated position without citations, at most 500 characters; empty if the text states none."""
    # Stripped here: the same in the pattern would take quadratic time on a long line of blanks.
    lines = reversed([found["stand"] for found in _AFTER_LINE_BREAK.finditer(f"\n{text}")])
    stated = (name_sources(line, ()).strip(" \t\r*_") for line in lines)
    return next((each[:_MAX_CHARACTERS] for each in stated if each), "")
