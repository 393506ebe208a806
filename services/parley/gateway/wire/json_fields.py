"""What is read of JSON that an endpoint sent: the value that is wanted, or an empty one of its type."""

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["as_arguments", "as_count", "as_mapping", "as_mappings", "as_text", "written_tokens"]


def as_arguments(value: object) -> str:
    """Return the arguments of a tool as JSON text; some endpoints send the object itself."""
    return json.dumps(value) if isinstance(value, Mapping) else as_text(value)


def as_text(value: object) -> str:
    """Return a text."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """Return a number of tokens that can be true."""
    return value if isinstance(value, int) and 0 <= value < 2**40 else 0


def written_tokens(usage: Mapping[str, Any], read: str, written: str) -> int:
    """Return the tokens that an answer took by the fields of these names, those of its reasoning among them.

    Nearly all endpoints count reasoning in; where it is counted beside the text (xAI's), only the total shows it.
    """
    tokens = as_count(usage.get(written))
    reasoning = as_count(as_mapping(usage.get(f"{written}_details")).get("reasoning_tokens"))
    beside = as_count(usage.get("total_tokens")) == as_count(usage.get(read)) + tokens + reasoning
    return tokens + reasoning if beside else tokens


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return an object."""
    return value if isinstance(value, Mapping) else {}


def as_mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
