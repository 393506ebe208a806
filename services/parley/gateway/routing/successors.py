"""Which model an endpoint lists in place of one that it lists no more."""

import re
from collections.abc import Iterable


def likely_successor(model: str, listed: Iterable[str]) -> str:
    """Return the newest listed model that is called as this one is but for its version; empty if none is.

    A name that holds a date is one state of a model, and comes after the name without it.
    """
    words, _ = _split(model)
    alike = [each for each in listed if _split(each)[0] == words]
    return max(alike, key=lambda each: (_split(each)[1], -len(each)), default="")


def _split(name: str) -> tuple[str, tuple[int, ...]]:
    """Return a name's words, and the numbers of its version. `gpt-5.5-mini` is `gpt-#-mini`, and 5, 5."""
    undated = re.sub(r"[-@]20\d\d-?\d\d-?\d\d$", "", name)
    version = re.search(r"\d+(?:\.\d+)*", undated)
    numbers = tuple(map(int, version[0].split("."))) if version else ()
    return re.sub(r"\d+(?:\.\d+)*", "#", undated, count=1), numbers
