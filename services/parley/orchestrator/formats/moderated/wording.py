"""Words of a text as keywords are looked up in them: without case, and without the endings that grammar gives them."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_WORD: Final = re.compile(r"\w+")
_ENDINGS: Final = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ies",
    "ity",
    "ers",
    "er",
    "ed",
    "es",
    "ly",
    "s",
    "e",
    "y",
)
"""Longest first."""
_SHORTEST: Final = 3


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return a word, in lower case, without its ending; one that would become too short keeps it."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)]
    return word


def stems(*texts: str) -> frozenset[str]:
    """Return the stems of all words of texts."""
    return frozenset(map(stem, {word for text in texts for word in _WORD.findall(text.casefold())}))


def count_keywords(text: frozenset[str], keywords: Iterable[str]) -> int:
    """Return how many of the keywords a text holds, which is given by its stems; of one of several words, all."""
    return sum(bool(words := _stems_of(each)) and words <= text for each in keywords)


@lru_cache(maxsize=4096)
def _stems_of(keyword: str) -> frozenset[str]:
    return stems(keyword)
