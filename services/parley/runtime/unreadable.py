"""What was stored and cannot be read is passed over, counted and told of: one such thing never hides all others."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from parley.runtime.logs import get_logger
from parley.runtime.telemetry import meter

__all__ = ["UnreadableError", "read_or_raise", "report_unreadable", "skip_unreadable"]

S = TypeVar("S")
T = TypeVar("T")

_logger = get_logger(__name__)
_counter: Final = meter(__name__).create_counter(
    "parley.unreadable",
    "{item}",
    "Stored things that could not be read and were passed over, each counted once.",
)
_MAX_REPORTED: Final = 10_000
_reported: dict[tuple[str, str], None] = {}


class UnreadableError(Exception):
    """Something stored is not of the form that this version reads."""


def skip_unreadable(
    found: Iterable[S], read: Callable[[S], T], kind: str, name: Callable[[S], str]
) -> Iterator[T]:
    """Read things, passing over those that cannot be read. `kind` and `name` say what they are, in logs and metrics."""
    for each in found:
        try:
            yield read_or_raise(each, read, kind, name)
        except UnreadableError:
            continue


def read_or_raise(found: S, read: Callable[[S], T], kind: str, name: Callable[[S], str]) -> T:
    """Read one thing. Raise UnreadableError, and tell of it, where that cannot be done."""
    try:
        return read(found)
    except Exception as error:
        report_unreadable(kind, name(found), error)
        raise UnreadableError(f"{kind} {name(found)} cannot be read: {error}") from error


def report_unreadable(kind: str, name: str, error: Exception) -> None:
    """Count and log something that cannot be read, once a process: a scan comes by it every second."""
    if (kind, name) in _reported:
        return
    if len(_reported) >= _MAX_REPORTED:
        del _reported[next(iter(_reported))]
    _reported[kind, name] = None
    _counter.add(1, {"parley.kind": kind})
    reason = f"{type(error).__name__}: {error}"
    _logger.error("stored data cannot be read and is passed over", kind=kind, name=name, reason=reason)
