"""Whole sentences of a model's text, which may stop at a limit and repeat itself."""

from collections.abc import Iterator

_ENDS = (".", "!", "?")
_AFTER_END = "\"')]*_"


def to_prose(text: str) -> str:
    """Return the text up to the end of its last whole sentence, as one paragraph, each sentence once.

    If no sentence ends, it is the whole text with an ellipsis.
    """
    return " ".join(dict.fromkeys(_sentences(text))) or _with_ellipsis(text)


def first_sentence(text: str) -> str:
    """Return the first whole sentence of a text, or all of a text without any."""
    return next(_sentences(text), "") or _with_ellipsis(text)


def _sentences(text: str) -> Iterator[str]:
    """Yield each sentence of two characters or more with its end. A number with a full stop is a place in a list."""
    words: list[str] = []
    for word in text.split():
        bare = word.rstrip(_AFTER_END)
        is_long = bool(words) or len(bare) > 2
        words.append(word)
        if is_long and len(bare) > 1 and bare.endswith(_ENDS) and not bare[-2].isdecimal():
            yield " ".join(words)
            words = []


def _with_ellipsis(text: str) -> str:
    words = " ".join(text.split())
    return f"{words.rstrip('.')} …" if words else ""
