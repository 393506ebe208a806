"""Page tokens: the place in a list's order that a page ends with."""

import base64
import binascii
import json
from math import isfinite
from typing import Final

from parley.runtime.validation import Violations

_MAX_TOKEN: Final = 1024
"""Characters. A longer token was forged, and too deep nesting would not raise ValueError."""

Place = tuple[float, str]
"""The number that a list is ordered by, and the key that breaks ties."""


def to_token(place: Place) -> str:
    """Return the token of a page that ends at this place."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def read_token(violations: Violations, given: str) -> Place | None:
    """Return the place at which an earlier page ended, or None for the first page; add a bad token as a bad field."""
    if not given:
        return None
    try:
        number, key = json.loads(base64.urlsafe_b64decode(given[:_MAX_TOKEN].encode()))
        if isinstance(key, str) and isfinite(number):
            return float(number), key
    except (ValueError, TypeError, OverflowError, binascii.Error):
        pass
    violations.add("page_token", "is not the token of an earlier page")
    return None
