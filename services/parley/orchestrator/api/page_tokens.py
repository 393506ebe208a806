"""Pages of a list: the token with the start of the next one."""

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from parley.runtime.validation import Violations

T = TypeVar("T")

_MAX_TOKEN: Final = 256
_SEPARATOR: Final = "#"


def place_form(key: re.Pattern[str]) -> re.Pattern[str]:
    """Return the form of a place that is a time, as documents store it, and a key of this form."""
    return re.compile(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{6}}\+00:00/{key.pattern}", re.ASCII)


def page_token(place: str, asked: str) -> str:
    """Return the token of the page that begins after a place in a list; `asked` names what the list holds."""
    return base64.urlsafe_b64encode(f"{place}{_SEPARATOR}{asked}".encode()).decode()


def cut_page(
    found: Sequence[T], size: int, place: Callable[[T], str], asked: str = ""
) -> tuple[Sequence[T], str]:
    """Return a page of what was found, one more than its size if there is more, and the token of the next one; empty: it is the last."""
    page = found[:size]
    return page, page_token(place(page[-1]), asked) if len(found) > size else ""


def place_of(violations: Violations, token: str, form: re.Pattern[str], asked: str = "") -> str:
    """Return the place in a token, which must have this form; empty for the first page.

    A token of another list is noted as a violation.
    """
    if not token:
        return ""
    try:
        content = base64.b64decode(token[:_MAX_TOKEN].encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        content = ""
    place, _, of = content.partition(_SEPARATOR)
    violations.check(
        that=bool(form.fullmatch(place)) and of == asked,
        field="page_token",
        otherwise="is not a token of this list: another filter, order or debate has its own",
    )
    return place
