"""Whether a model is so small that its answers are not to be relied on, by its name or by what its server says."""

import re
from typing import Final

_RELIABLE: Final = 1_000_000_000
"""Parameters from which on an answer is more than a demonstration."""
_SIZE: Final = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])", re.IGNORECASE)
"""A size in a name: `0.5b`, `135m`; neither the 7 of `8x7b` nor `q4_k_m`."""
_UNITS: Final = {"b": 1_000_000_000, "m": 1_000_000}
_MIN_PARAMETERS: Final = 10_000_000
"""Less is no size: `1m` in a name is a context of a million tokens."""
_TINY_FAMILY: Final = re.compile(r"(?:^|[/_-])smollm", re.IGNORECASE)


def is_tiny(name: str, parameters: int = 0) -> bool:
    """Return whether a model is tiny. `parameters` are what its server says; 0: it does not say."""
    if parameters:
        return parameters < _RELIABLE
    sizes = [float(number) * _UNITS[unit.lower()] for number, unit in _SIZE.findall(name)]
    known = [size for size in sizes if size >= _MIN_PARAMETERS]
    return max(known) < _RELIABLE if known else _TINY_FAMILY.search(name) is not None
