"""Formats by name and version: the order of phases that a debate goes through.

A debate finishes on the version it began with, so an old version stays here while debates of it are open.
"""

from collections.abc import Awaitable, Callable, Mapping

from parley.orchestrator.debate import Debate
from parley.orchestrator.events import Solution
from parley.orchestrator.formats.panel import panel

__all__ = ["Format", "UnknownFormatError", "get", "known", "resolve"]

Format = Callable[[Debate], Awaitable[Solution]]

_FORMATS: Mapping[str, Format] = {"panel@1": panel}
_LATEST: Mapping[str, str] = {name.partition("@")[0]: name for name in _FORMATS}


class UnknownFormatError(ValueError):
    """There is no format of this name and version."""


def known() -> tuple[str, ...]:
    """Return the names of all formats, without versions."""
    return tuple(sorted(_LATEST))


def resolve(name: str) -> str:
    """Return `name@version` for a name with or without a version.

    Raises:
        UnknownFormatError: there is none; the message lists the known ones.
    """
    found = name if name in _FORMATS else _LATEST.get(name)
    if found is None:
        raise UnknownFormatError(f"unknown format {name!r}; known formats: {', '.join(known())}")
    return found


def get(name: str) -> Format:
    """Return the format with this name and version."""
    return _FORMATS[resolve(name)]
