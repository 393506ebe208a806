"""Small made-up English, the same for the same seed."""

import re
from random import Random

_TEXT = (
    "the plan holds because each part can be tested alone and what fails is seen early while cost grows "
    "slowly with load so teams keep one clear owner for every queue cache index and store before they "
    "split services further yet measured evidence from real traffic should decide"
)
_WORDS = _TEXT.split()
# A word longer than a socket buffer would make one event of a huge answer.
_PIECE = re.compile(r"\s*\S{1,4096}|\s+")


def sentence(random: Random, words: int) -> str:
    """Return that many words in lower case."""
    return " ".join(random.choices(_WORDS, k=words))


def split_words(text: str) -> list[str]:
    """Cut a text into the pieces it is streamed in; joined they are the text again."""
    return _PIECE.findall(text)


def count_tokens(text: str) -> int:
    """Estimate tokens as a quarter of the characters, rounded up: near enough for budgets in tests."""
    return (len(text) + 3) // 4
