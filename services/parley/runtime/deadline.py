"""The time left for the work in hand, which calls to other services take with them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = [
    "MARGIN_SECONDS",
    "MARGIN_SHARE",
    "deadline_scope",
    "remaining",
    "set_call_deadline",
    "timeout_for_call",
]

MARGIN_SECONDS: Final = 0.05
MARGIN_SHARE: Final = 0.02
"""A call gets what is left minus 2 %, and minus 50 ms at most, so that its caller can still answer."""

_deadline: ContextVar[float | None] = ContextVar("parley_deadline", default=None)


def remaining() -> float | None:
    """Return the seconds left, 0.0 or less when they are used up; None without a deadline."""
    deadline = _deadline.get()
    return None if deadline is None else deadline - time.monotonic()


@contextmanager
def deadline_scope(seconds: float | None) -> Iterator[None]:
    """Give calls made inside `seconds` at most, or what is left already if that is less.

    None takes the deadline away: for work that outlives the call that began it. The scope only
    bounds calls to other services; bound other work with `asyncio.timeout(remaining())`.
    """
    outer = _deadline.get()
    inner = None if seconds is None else time.monotonic() + seconds
    if inner is not None and outer is not None:
        inner = min(inner, outer)
    token = _deadline.set(inner)
    try:
        yield
    finally:
        _deadline.reset(token)


def set_call_deadline(seconds: float | None) -> None:
    """Make the deadline of a call that came in the one of this task, replacing any that was inherited."""
    _deadline.set(None if seconds is None else time.monotonic() + seconds)


def timeout_for_call(asked: float | None) -> float | None:
    """Return the timeout for an outgoing call: what is left minus the margin, or `asked` if that is less."""
    left = remaining()
    if left is None:
        return asked
    passed_on = left - min(MARGIN_SECONDS, MARGIN_SHARE * max(left, 0.0))
    return passed_on if asked is None else min(asked, passed_on)
