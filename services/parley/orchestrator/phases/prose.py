"""What a text says that was to be JSON of a form, and is not."""

import json
from typing import Any

__all__ = ["words_of"]


def words_of(text: str) -> str:
    """Return the text itself, or, where it is a JSON object or list, the texts in it as Markdown."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    try:
        return _words(value) if isinstance(value, dict | list) else text
    except RecursionError:
        return text


def _words(value: Any) -> str:
    if isinstance(value, dict):
        said = ((key, _words(each)) for key, each in value.items())
        return "\n\n".join(f"{key}: {words}" for key, words in said if words)
    if isinstance(value, list):
        return "\n".join(f"- {words}" for words in map(_words, value) if words)
    return value.strip() if isinstance(value, str) else ""
