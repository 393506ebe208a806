"""The words of a text as searches compare them: those that carry meaning, without endings, in any language."""

import re
from typing import Final

_WORD: Final = re.compile(r"\w+")
_CHARACTERS: Final = 5
"""Of a word that count, so that `version` and `versioning` are alike; a word with a digit counts as it is."""
_MAX_WORDS: Final = 400
_COMMON: Final = frozenset(
    _WORD.findall(
        """a about after all an and any are as at be before by can could did do does each for from had has have he her his how i if
    in into is it its may might more most no not of on one only or our out over per shall should so some than that the their
    them then there these they this those to two under up us was we were what when where which who why will with would you
    your"""
    )
)
"""English words that say nothing about a matter."""


def list_words(text: str) -> list[str]:
    """Return the different words of a text in their order, at most 400."""
    found: dict[str, None] = {}
    for match in _WORD.finditer(text.casefold()):
        word = match[0]
        if word not in _COMMON:
            found[word if any(map(str.isdigit, word)) else word[:_CHARACTERS]] = None
            if len(found) == _MAX_WORDS:
                break
    return list(found)
