"""What a structured answer says so far: the texts in JSON that is still being written, as Markdown."""

import functools
import re
from collections.abc import Iterator
from typing import Any, Final

_BEGINNING: Final = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
"""Where the JSON begins. Models put words or the first line of a code block before it."""
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
"""JSON has none of them in its texts; what models write has."""
_FENCE_LINE: Final = re.compile(r"^[ \t]*`{1,}\w*[ \t]*$", re.MULTILINE)
_LETTER: Final = re.compile(r"[A-Z]{1,2}")
"""The value of a field `agent`, which alone says nothing to people."""
_MARKUP: Final = re.compile(r"(?:[#>|`~*+-]|\d+[.)])")
"""What a text may begin with that would be no markup behind a label."""


@functools.lru_cache(maxsize=64)
def extract_words(text: str) -> str:
    """Return the texts in a JSON answer so far, with the names of their fields; a text without JSON, as it is.

    Empty if nothing can be read yet, or if what begins as JSON is none.
    """
    begun = _BEGINNING.search(text)
    before = _FENCE_LINE.sub("", text[: begun.start()] if begun else text).strip()
    if begun is None:
        return before
    from pydantic_core import from_json  # only a terminal shows what comes

    try:
        value = from_json(
            _CONTROL.sub(" ", text[begun.start() :].rstrip("`\n ")), allow_partial="trailing-strings"
        )
    except ValueError:
        return text.strip() if before else ""  # prose with braces, such as code
    return "\n\n".join(filter(None, (before, _to_markdown(value))))


def _to_markdown(value: Any) -> str:
    match value:
        case str():
            return value.strip()
        case dict():
            return "\n\n".join(_label(name, words) for name, words in _words_of_fields(value))
        case list():
            return "\n".join(f"- {_indent(_item(each))}" for each in value if _item(each))
        case _:
            return ""


def _item(value: Any) -> str:
    """Return an item of a list: an object's first text stands for it, and has no label."""
    if not isinstance(value, dict):
        return _to_markdown(value)
    first, *others = [*_words_of_fields(value)] or [("", "")]
    return "\n\n".join((first[1], *(_label(name, words) for name, words in others)))


def _words_of_fields(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, each in value.items():
        words = _to_markdown(each)
        if name == "agent" and _LETTER.fullmatch(words):
            words = f"agent {words}"
        if words:
            yield name.replace("_", " ").capitalize(), words


def _label(label: str, words: str) -> str:
    gap = "\n\n" if "\n" in words or _MARKUP.match(words) else " "
    return f"**{label}:**{gap}{words}"


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")
