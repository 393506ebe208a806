"""Whole sentences out of what a model wrote that stops where its limit is, and says things again."""

import re
from collections.abc import Iterator

__all__ = ["first_sentence", "prose"]

_SENTENCE = re.compile(r"[^\s].*?[^\s\d][.!?]+[\"')\]*_]*(?=\s|$)")
"""Up to its end; a number with a full stop is a place in a list."""


def prose(text: str) -> str:
    """Return the text up to the end of its last whole sentence, as one paragraph, each sentence once.

    Where no sentence ends, it is the whole text with an ellipsis.
    """
    return " ".join(dict.fromkeys(_sentences(text))) or _unfinished(text)


def first_sentence(text: str) -> str:
    """Return the first whole sentence of a text, or all of a text without any."""
    return next(_sentences(text), "") or _unfinished(text)


def _sentences(text: str) -> Iterator[str]:
    return (found.group() for found in _SENTENCE.finditer(" ".join(text.split())))


def _unfinished(text: str) -> str:
    words = " ".join(text.split())
    return f"{words.rstrip('.')} …" if words else ""
