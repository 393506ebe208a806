"""The remaining time of the current work, which outgoing calls inherit."""

import time
from contextvars import ContextVar
from typing import Final

MARGIN_SECONDS: Final = 0.05
MARGIN_SHARE: Final = 0.02
"""A call gets the remaining time minus 2 %, 50 ms at most, so that its caller can still answer."""

_deadline: ContextVar[float | None] = ContextVar("parley_deadline", default=None)


def remaining() -> float | None:
    """Return the seconds left: 0.0 or less if the deadline has passed, None without a deadline."""
    deadline = _deadline.get()
    return None if deadline is None else deadline - time.monotonic()


def set_call_deadline(seconds: float | None) -> None:
    """Set this task's deadline to that of an incoming call, in place of an inherited one. None: the call has none.

    It limits calls to other services alone; limit other work with `asyncio.timeout(remaining())`.
    """
    _deadline.set(None if seconds is None else time.monotonic() + seconds)


def timeout_for_call(asked: float | None) -> float | None:
    """Return the timeout of an outgoing call: the remaining time minus the margin, or `asked` if that is less."""
    left = remaining()
    if left is None:
        return asked
    passed_on = left - min(MARGIN_SECONDS, MARGIN_SHARE * max(left, 0.0))
    return passed_on if asked is None else min(asked, passed_on)
