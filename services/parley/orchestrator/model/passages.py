"""Passages of large documents: where to cut them, and which are nearest to a question. Pure functions."""

import re
from collections.abc import Sequence
from operator import mul
from typing import Final

from parley.v1.source_pb2 import Passage

LARGE_BYTES: Final = 12_000
"""A document with more is cut into passages: about as many as a source from research may have."""
MAX_CUT: Final = 1_000
"""Passages that all documents of a debate are cut into at most: their vectors take a second or so."""
_CHARACTERS: Final = 1_000
"""Of a passage: what a model reads at once."""
EMBEDDED: Final = 2_000
"""Characters of a passage that are embedded: all, but of documents with more than a million characters."""
_ENDS: Final = (
    re.compile(r"\n[ \t]*\n\s*"),
    re.compile(r"\n\s*"),
    re.compile(r"[.!?]\s+|[。！？]"),  # noqa: RUF001 - of texts in Chinese and Japanese
    re.compile(r"\s+"),
)
"""Where a passage ends best: at a paragraph, a line, a sentence, a word."""


def choose_size(characters: int) -> int:
    """Return how many characters a passage has at most if so many are cut."""
    return max(_CHARACTERS, -(-2 * characters // MAX_CUT))


def cut_passages(text: str, size: int) -> list[Passage]:
    """Return the passages of a text in order, each of half of `size` to `size` characters, as far as they are not blank."""
    found, start = [], 0
    while start < len(text):
        end = _find_end(text, start, size)
        if not text[start:end].isspace():
            found.append(Passage(start=start, end=end))
        start = end
    return found


def _find_end(text: str, start: int, size: int) -> int:
    if start + size >= len(text):
        return len(text)
    for pattern in _ENDS:
        ends = [each.end() for each in pattern.finditer(text, start + size // 2, start + size)]
        if ends:
            return ends[-1]
    return start + size


def rank_vectors(asked: Sequence[float], vectors: Sequence[Sequence[float]]) -> list[int]:
    """Return the places of vectors of length 1, the most like `asked` first; of equal ones the earlier first."""
    likeness = [sum(map(mul, asked, each)) for each in vectors]
    return sorted(range(len(vectors)), key=lambda place: -likeness[place])
