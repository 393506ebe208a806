"""Whether two debates ask the same by the words of their questions and stands, if their vectors alone do not tell."""

import re
from typing import Final

from parley.memory.words import list_words

_BETWEEN_SENTENCES: Final = re.compile(r"(?<=[.:!?])\s+")
_FEWEST_WORDS: Final = 3
"""Of a question that can be told apart from others: `Is it ready?` may ask about anything."""


def ask_the_same(earlier: tuple[str, str], later: tuple[str, str]) -> bool:
    """Return whether two debates ask the same, of which each is given by its question and a stand on it.

    They do if all that one asks is in the words of the other. Each may say more beside what it asks, such as what has happened
    meanwhile; if the earlier stand speaks of that too, it may have waited for it, and then nothing is said.
    """
    asked, _ = _split(earlier[0])
    asks, circumstances = _split(later[0])
    return (
        min(len(asked), len(asks)) >= _FEWEST_WORDS
        and asked <= _find_words(*later)
        and asks <= _find_words(*earlier)
        and circumstances.isdisjoint(_find_words(earlier[1]))
    )


def _split(question: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of what a question asks, and those of its other sentences."""
    sentences = _BETWEEN_SENTENCES.split(question.strip())
    asking = [each for each in sentences if each.endswith("?")] or sentences
    return _find_words(*asking), _find_words(*(each for each in sentences if each not in asking))


def _find_words(*texts: str) -> frozenset[str]:
    return frozenset(list_words("\n".join(texts)))
