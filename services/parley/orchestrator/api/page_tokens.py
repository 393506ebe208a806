"""Pages of a list: the token that says where the next one begins."""

import base64
import binascii
import re
from typing import Final

from parley.runtime.validation import Violations

__all__ = ["page_token", "place_of"]

_MAX_TOKEN: Final = 256


def page_token(place: str) -> str:
    """Return the token of the page that begins after a place in a list."""
    return base64.urlsafe_b64encode(place.encode()).decode()


def place_of(violations: Violations, token: str, form: re.Pattern[str]) -> str:
    """Return the place that a token stands for, which has to be of this form; empty for the first page."""
    if not token:
        return ""
    try:
        place = base64.b64decode(token[:_MAX_TOKEN].encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        place = ""
    violations.check(
        that=bool(form.fullmatch(place)), field="page_token", otherwise="is not a token of this service"
    )
    return place
