"""Fairness: whether a moderator's summary leaves a perspective out that was argued in the round."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from parley.orchestrator.formats.moderated.wording import stems

__all__ = ["Heard", "left_out"]

_LEAST_SHARED: Final = 2
"""Words of its own that a summary has to share with a perspective that it names."""
_LEAST_SHARED_UNNAMED: Final = 5
_LEAST_SHARE_UNNAMED: Final = 0.25
_SHORTEST: Final = 4


@dataclass(frozen=True, slots=True)
class Heard:
    """A perspective that was argued in a round.

    Attributes:
        letter: Its agent's.
        text: All that its agent said.
    """

    letter: str
    name: str
    text: str


def left_out(summary: str, heard: Sequence[Heard], question: str) -> list[Heard]:
    """Return the perspectives that a summary says nothing of: neither a point by its name, nor who said it together with what.

    To be named in passing is not enough, and what the question, or another perspective, says too tells nothing.
    """
    said = stems(summary)
    asked = stems(question)
    missing = []
    for each in heard:
        others = frozenset().union(*(stems(other.text, other.name) for other in heard if other is not each))
        own = {word for word in stems(each.text) - others - asked if len(word) >= _SHORTEST}
        shared = len(own & said)
        is_told = (
            re.search(rf"\b{each.letter}\.\d", summary) is not None
            or (_is_named(summary, each) and shared >= min(_LEAST_SHARED, len(own)))
            or (shared >= _LEAST_SHARED_UNNAMED and shared >= _LEAST_SHARE_UNNAMED * len(own))
        )
        if not is_told:
            missing.append(each)
    return missing


def _is_named(summary: str, heard: Heard) -> bool:
    by_letter = re.search(rf"\bagent {heard.letter}\b", summary, re.IGNORECASE)
    return by_letter is not None or heard.name.casefold() in summary.casefold()
