"""What each error means: does it count against the route, may another route help, is the route asked again.

The table below is the whole of it; everything else only finds the row.
"""

from dataclasses import dataclass, field
from typing import Final

from grpc import StatusCode

__all__ = ["TABLE", "AttemptFailed", "Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of failure.

    Attributes:
        counts: whether the route's breaker hears of it.
        next_route: whether the call goes on with its next route.
        again: whether this call may come back to the same route, after a pause.
        alarm: whether an operator has to mend something; it is logged as an error.
        code, reason: what the caller gets if nothing else helped.
    """

    name: str
    counts: bool
    next_route: bool
    again: bool
    alarm: bool
    code: StatusCode
    reason: str


def _row(name: str, marks: str, code: StatusCode, reason: str) -> Row:
    words = marks.split()
    return Row(name, "counts" in words, "next" in words, "again" in words, "alarm" in words, code, reason)


# fmt: off
TIMEOUT           = _row("timeout",           "counts next again", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
CONNECTION        = _row("connection",        "counts next again", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
CUT_ANSWER        = _row("cut answer",        "counts next again", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
UNREADABLE_ANSWER = _row("unreadable answer", "counts next again", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
EMPTY_ANSWER      = _row("empty answer",      "next again",        StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
SERVER_ERROR      = _row("server error",      "counts next again", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
RATE_LIMIT        = _row("rate limit",        "counts next again", StatusCode.RESOURCE_EXHAUSTED,  "PROVIDER_RATE_LIMIT")
QUOTA             = _row("quota",             "counts next alarm", StatusCode.RESOURCE_EXHAUSTED,  "PROVIDER_QUOTA")
AUTH              = _row("auth",              "counts next alarm", StatusCode.PERMISSION_DENIED,   "PROVIDER_AUTH")
UNKNOWN_MODEL     = _row("unknown model",     "counts next alarm", StatusCode.NOT_FOUND,           "UNKNOWN_ROUTE")
NO_SUCH_ENDPOINT  = _row("no such endpoint",  "counts next alarm", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
UNFORESEEN        = _row("unforeseen error",  "counts next alarm", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
CONTENT_REFUSED   = _row("content refused",   "next",              StatusCode.FAILED_PRECONDITION, "BAD_REQUEST")
BAD_REQUEST       = _row("bad request",       "",                  StatusCode.FAILED_PRECONDITION, "BAD_REQUEST")
CONTEXT_OVERFLOW  = _row("context overflow",  "",                  StatusCode.FAILED_PRECONDITION, "CONTEXT_OVERFLOW")
INVALID_ANSWER    = _row("invalid answer",    "",                  StatusCode.FAILED_PRECONDITION, "INVALID_STRUCTURED_ANSWER")
CALL_TIMEOUT      = _row("call timeout",      "",                  StatusCode.DEADLINE_EXCEEDED,   "CALL_TIMEOUT")
CALL_CANCELLED    = _row("call cancelled",    "",                  StatusCode.CANCELLED,           "CALL_CANCELLED")
NO_ROUTE          = _row("no route",          "",                  StatusCode.UNAVAILABLE,         "NO_ROUTE_AVAILABLE")
# fmt: on

TABLE: Final = (
    TIMEOUT,
    CONNECTION,
    CUT_ANSWER,
    UNREADABLE_ANSWER,
    EMPTY_ANSWER,
    SERVER_ERROR,
    RATE_LIMIT,
    QUOTA,
    AUTH,
    UNKNOWN_MODEL,
    NO_SUCH_ENDPOINT,
    UNFORESEEN,
    CONTENT_REFUSED,
    BAD_REQUEST,
    CONTEXT_OVERFLOW,
    INVALID_ANSWER,
    CALL_TIMEOUT,
    CALL_CANCELLED,
    NO_ROUTE,
)


@dataclass(eq=False)
class AttemptFailed(Exception):  # noqa: N818 (an outcome, not an error of this program)
    """A try at a route did not give an answer.

    `message` is one line without secrets; `status` is the HTTP status, 0 if there was none; `retry_after` is what
    the endpoint asked for, in seconds.
    """

    row: Row
    message: str
    status: int = 0
    retry_after: float | None = None
    route: str = field(default="")

    def __post_init__(self) -> None:
        super().__init__(self.message)
