"""JSON of an endpoint, read only if that is done in a moment: nothing interrupts its reading, and every value takes its time."""

import json
from typing import Any, Final

__all__ = ["read_json"]

_MAX_VALUES: Final = 65_536
"""Ten times what the longest list of models has. They are counted by what stands before each, in texts too."""


def read_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError where it is none, or has too many values, and RecursionError."""
    if text.count(",") + text.count("[") + text.count("{") > _MAX_VALUES:
        raise ValueError("it has too many values")
    return json.loads(text)
