"""Skip stored data that cannot be read, count and log it: one unreadable item never hides the others."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, TypeVar

from parley.runtime.logs import get_logger
from parley.runtime.telemetry import meter

S = TypeVar("S")
T = TypeVar("T")

_logger = get_logger(__name__)
_counter: Final = meter(__name__).create_counter(
    "parley.unreadable", "{item}", "Stored items that could not be read and were skipped, each counted once."
)
_MAX_REPORTED: Final = 10_000
_KEY: Final = attrgetter("key")
_reported: dict[tuple[str, str], None] = {}


class UnreadableError(Exception):
    """A stored item has a form that this version cannot read."""


def skip_unreadable(
    found: Iterable[S], read: Callable[[S], T], kind: str, name: Callable[[S], str] = _KEY
) -> Iterator[T]:
    """Yield the items that can be read, and skip the others.

    `kind` and `name` describe them in logs and metrics; the name of a document is its key.
    """
    for each in found:
        try:
            yield read_or_raise(each, read, kind, name)
        except UnreadableError:
            continue


async def find_readable(
    find: Callable[[int], Awaitable[Sequence[S]]],
    limit: int,
    read: Callable[[S], T],
    kind: str,
) -> list[T]:
    """Return the first `limit` items that can be read: where others are among them, more are asked for. `find` returns the first of so many."""
    wanted = limit
    while True:
        found = await find(wanted)
        readable = list(skip_unreadable(found, read, kind))
        if len(readable) >= limit or len(found) < wanted:
            return readable[:limit]
        wanted *= 2


def read_or_raise(found: S, read: Callable[[S], T], kind: str, name: Callable[[S], str] = _KEY) -> T:
    """Read one item, described as by `skip_unreadable`. If that fails, report it and raise UnreadableError."""
    try:
        return read(found)
    except Exception as error:
        report_unreadable(kind, name(found), error)
        raise UnreadableError(f"{kind} {name(found)} cannot be read: {error}") from error


def report_unreadable(kind: str, name: str, error: Exception) -> None:
    """Count and log an unreadable item, once a process: a scan meets it every second."""
    if (kind, name) in _reported:
        return
    if len(_reported) >= _MAX_REPORTED:
        del _reported[next(iter(_reported))]
    _reported[kind, name] = None
    _counter.add(1, {"parley.kind": kind})
    reason = f"{type(error).__name__}: {error}"
    _logger.error("stored data cannot be read and is skipped", kind=kind, name=name, reason=reason)
