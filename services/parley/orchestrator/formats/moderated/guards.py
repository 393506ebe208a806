"""Guards: plain measures of what a debater says in a round, against repetition, straying from the question, and excess.

They flag, and never decide: what they find is told to the moderator, and recorded.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from parley.orchestrator.formats.moderated.wording import stem

__all__ = ["MOST_REPEATED", "is_over_budget", "is_repetition", "on_topic_share", "repeated_share", "strays"]

MOST_REPEATED: Final = 0.6
"""The share of an argument that may repeat what its author said in the round before."""
_LEAST_ON_TOPIC: Final = 0.1
"""The share of an argument's long words that its question, or another debater, uses too, below which it strays."""
_RUN: Final = 3
"""Words in a row that count as repeated where they stood in the text before too."""
_LEAST_WORDS: Final = 12
"""Of shorter texts nothing can be told; of long words, `_LEAST_LONG_WORDS` are enough."""
_LEAST_LONG_WORDS: Final = 8
_LONG: Final = 6
"""Letters of a word that tells a subject; short ones stand in every text, and so a language with short words alone is never flagged."""
_TOKEN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_EMPTY_WORDS: Final = frozenset(
    [
        "always",
        "another",
        "around",
        "because",
        "become",
        "before",
        "better",
        "between",
        "cannot",
        "change",
        "enough",
        "either",
        "having",
        "however",
        "instead",
        "little",
        "matter",
        "nothing",
        "number",
        "perhaps",
        "please",
        "position",
        "question",
        "rather",
        "really",
        "reason",
        "reasons",
        "second",
        "should",
        "simply",
        "someone",
        "something",
        "sometimes",
        "therefore",
        "though",
        "thought",
        "through",
        "toward",
        "towards",
        "trying",
        "unless",
        "whether",
        "without",
    ]
)


def repeated_share(text: str, before: str) -> float | None:
    """Return the share of a text's words that stand in runs which a text before has too, 0 to 1; None where it is too short."""
    words, earlier = _words(text), _words(before)
    if len(words) < _LEAST_WORDS or len(earlier) < _RUN:
        return None
    known = {tuple(earlier[place : place + _RUN]) for place in range(len(earlier) - _RUN + 1)}
    repeated: set[int] = set()
    for place in range(len(words) - _RUN + 1):
        if tuple(words[place : place + _RUN]) in known:
            repeated.update(range(place, place + _RUN))
    return len(repeated) / len(words)


def is_repetition(share: float | None) -> bool:
    """Return whether an argument repeats too much of the round before."""
    return share is not None and share > MOST_REPEATED


def on_topic_share(text: str, references: Iterable[str]) -> float | None:
    """Return the share of a text's long words that stand in the question, or with others, too; None where it has too few."""
    own = _meaningful(text)
    if len(own) < _LEAST_LONG_WORDS:
        return None
    return len(own & frozenset().union(*map(_meaningful, references))) / len(own)


def strays(share: float | None) -> bool:
    """Return whether an argument has too little in common with its question and the others."""
    return share is not None and share < _LEAST_ON_TOPIC


def is_over_budget(tokens: Sequence[int], budget: int, *, truncated: bool) -> bool:
    """Return whether a debater has written more than its budget for a round (0: no limit), or was cut off by it."""
    return bool(budget) and (truncated or sum(tokens) > budget)


def _words(text: str) -> list[str]:
    return [stem(word[0]) for word in _TOKEN.finditer(text.casefold())]


def _meaningful(text: str) -> frozenset[str]:
    words = (found[0] for found in _TOKEN.finditer(text.casefold()))
    return frozenset(stem(word) for word in words if len(word) >= _LONG and word not in _EMPTY_WORDS)
