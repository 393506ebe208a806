"""Reads JSON that an endpoint sent: the wanted value of a field, or an empty one of its type."""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

from pydantic_core import from_json, to_json

from parley.gateway.prompt.sanitizer import to_line

T = TypeVar("T")

MAX_TOKENS: Final = 100_000_000
"""Of one request; what an endpoint says beyond that it made up. No context comes near."""
_MAX_VALUES: Final = 65_536
"""Ten times what the longest list of models has. They are counted by what stands before each, in texts too."""
_MAX_NAME: Final = 200
_TEXT_TYPES: Final = (None, "text", "output_text")
"""Types of the parts of a content that are words; a part without a type is one too."""

_decoder: Final = json.JSONDecoder()


def read_json(text: str) -> Any:
    """Return the value of a JSON text. Raise ValueError if it is none or has too many values, and RecursionError.

    The bound keeps the time short: nothing interrupts the parser, and every value takes its time.
    """
    is_long = len(text) > _MAX_VALUES  # else it has no more values than characters
    if is_long and text.count(",") + text.count("[") + text.count("{") > _MAX_VALUES:
        raise ValueError("it has too many values")
    # Without `json.loads`, which looks for blanks around it: that takes as long as to read an event
    if text.startswith(("{", "[")):
        value, end = _decoder.raw_decode(text)
        if end == len(text):
            return value
    return json.loads(text)


def as_arguments(value: object) -> str:
    """Return the arguments of a tool as JSON text; some endpoints send the object itself."""
    return json.dumps(value) if isinstance(value, dict) else as_text(value)


def as_sendable(value: T) -> T | None:
    """Return what an endpoint gave, as it can be sent back to it; None if it is nested too deeply for that.

    Halves of a character are joined, or become U+FFFD.
    """
    try:
        to_json([[value]])  # as deep as it stands in a request, and no deeper can be written
    except ValueError:
        try:
            text = json.dumps(value, ensure_ascii=False)
            return cast(T, from_json(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")))
        except (ValueError, RecursionError):
            return None
    return value


def as_text(value: object) -> str:
    """Return a text."""
    return value if isinstance(value, str) else ""


def as_count(value: object, most: int = MAX_TOKENS) -> int:
    """Return a number, of tokens by default, that can be true, 0 for any other; some endpoints give it as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return round(value) if 0 <= value <= most else 0  # never of what is infinite or no number


def as_name(value: object) -> str:
    """Return what an endpoint calls something, in one printable line of at most 200 characters."""
    return "".join(filter(str.isprintable, to_line(as_text(value), _MAX_NAME)))


def count_written_tokens(usage: Mapping[str, Any], read: str, written: str) -> int:
    """Return the tokens that an answer took by the fields of these names, those of its reasoning among them.

    Nearly all endpoints count reasoning in; if it is counted apart from the text (xAI's), only the total shows it.
    """
    tokens = as_count(usage.get(written))
    reasoning = as_count(as_mapping(usage.get(f"{written}_details")).get("reasoning_tokens"))
    is_apart = as_count(usage.get("total_tokens")) == as_count(usage.get(read)) + tokens + reasoning
    return tokens + reasoning if is_apart else tokens


def as_content(value: object) -> str:
    """Return the text of a message's content: words, or parts that are words, objects with words, or reasoning."""
    if isinstance(value, list):
        return "".join(map(as_content, value))
    if isinstance(value, dict):
        return (
            as_text(value.get("text")) if value.get("type") in _TEXT_TYPES else as_text(value.get("refusal"))
        )
    return as_text(value)


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return an object."""
    return value if isinstance(value, dict) else {}


def as_mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
