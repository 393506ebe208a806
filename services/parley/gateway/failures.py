"""Failure kinds: does it count against the route, may another route help, is the route asked again.

The table below is the whole of it. Everything else only finds the kind.
"""

from dataclasses import dataclass, field
from typing import Final

from grpc import StatusCode
from msgspec import Struct

from parley.runtime.errors import ParleyError
from parley.v1 import agent_pb2


class FailureKind(Struct, frozen=True):
    """One kind of failure.

    Attributes:
        counts: whether it is recorded at the route's breaker.
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


def _kind(name: str, marks: str, code: StatusCode, reason: str) -> FailureKind:
    words = marks.split()
    return FailureKind(
        name, "counts" in words, "next" in words, "again" in words, "alarm" in words, code, reason
    )


# fmt: off
TIMEOUT           = _kind("timeout",           "counts next again", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
CONNECTION        = _kind("connection",        "counts next again", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
CUT_ANSWER        = _kind("cut answer",        "counts next again", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
UNREADABLE_ANSWER = _kind("unreadable answer", "counts next again", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
EMPTY_ANSWER      = _kind("empty answer",      "next",              StatusCode.FAILED_PRECONDITION, "EMPTY_ANSWER")
ONLY_TOOL_CALLS   = _kind("only tool calls",   "next",              StatusCode.FAILED_PRECONDITION, "EMPTY_ANSWER")
SERVER_ERROR      = _kind("server error",      "counts next again", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
RATE_LIMIT        = _kind("rate limit",        "counts next again", StatusCode.RESOURCE_EXHAUSTED,  "PROVIDER_RATE_LIMIT")
QUOTA             = _kind("quota",             "counts next alarm", StatusCode.RESOURCE_EXHAUSTED,  "PROVIDER_QUOTA")
AUTH              = _kind("auth",              "counts next alarm", StatusCode.PERMISSION_DENIED,   "PROVIDER_AUTH")
UNKNOWN_MODEL     = _kind("unknown model",     "counts next alarm", StatusCode.NOT_FOUND,           "UNKNOWN_ROUTE")
NO_SUCH_ENDPOINT  = _kind("no such endpoint",  "counts next alarm", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
UNREACHABLE       = _kind("unreachable",       "counts next alarm", StatusCode.UNAVAILABLE,         "PROVIDER_UNREACHABLE")
OWN_LIMIT         = _kind("own limit",         "next again",        StatusCode.UNAVAILABLE,         "GATEWAY_UNAVAILABLE")
UNFORESEEN        = _kind("unforeseen error",  "counts next alarm", StatusCode.UNAVAILABLE,         "PROVIDER_UNAVAILABLE")
CONTENT_REFUSED   = _kind("content refused",   "next",              StatusCode.FAILED_PRECONDITION, "BAD_REQUEST")
BAD_REQUEST       = _kind("bad request",       "",                  StatusCode.FAILED_PRECONDITION, "BAD_REQUEST")
CONTEXT_OVERFLOW  = _kind("context overflow",  "",                  StatusCode.FAILED_PRECONDITION, "CONTEXT_OVERFLOW")
INVALID_ANSWER    = _kind("invalid answer",    "",                  StatusCode.FAILED_PRECONDITION, "INVALID_STRUCTURED_ANSWER")
TRUNCATED         = _kind("truncated",         "",                  StatusCode.FAILED_PRECONDITION, "TRUNCATED")
CALL_TIMEOUT      = _kind("call timeout",      "",                  StatusCode.DEADLINE_EXCEEDED,   "CALL_TIMEOUT")
CALL_CANCELLED    = _kind("call cancelled",    "",                  StatusCode.CANCELLED,           "CALL_CANCELLED")
NO_ROUTE          = _kind("no route",          "",                  StatusCode.UNAVAILABLE,         "NO_ROUTE_AVAILABLE")
# fmt: on

FAILURE_KINDS: Final = (
    TIMEOUT,
    CONNECTION,
    CUT_ANSWER,
    UNREADABLE_ANSWER,
    EMPTY_ANSWER,
    ONLY_TOOL_CALLS,
    SERVER_ERROR,
    RATE_LIMIT,
    QUOTA,
    AUTH,
    UNKNOWN_MODEL,
    NO_SUCH_ENDPOINT,
    UNREACHABLE,
    OWN_LIMIT,
    UNFORESEEN,
    CONTENT_REFUSED,
    BAD_REQUEST,
    CONTEXT_OVERFLOW,
    INVALID_ANSWER,
    TRUNCATED,
    CALL_TIMEOUT,
    CALL_CANCELLED,
    NO_ROUTE,
)


@dataclass(eq=False)
class Failure(Exception):  # noqa: N818 (an outcome, not an error of this program)
    """There is no answer: of a route, or of the whole call.

    `message` is one line without secrets; `status` is the HTTP status, 0 if there was none; `retry_after` is what
    the endpoint asked for, in seconds.
    """

    kind: FailureKind
    message: str
    status: int = 0
    retry_after: float | None = None
    route: str = field(default="")

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def to_error(self, usage: agent_pb2.Usage) -> ParleyError:
        """Return the error that a caller gets for a call without an answer."""
        metadata = {
            "route": self.route,
            "provider_status": str(self.status) if self.status else "",
            "input_tokens": str(usage.input_tokens),
            "output_tokens": str(usage.output_tokens),
            "requests": str(usage.requests),
        }
        if usage.HasField("cost_micros"):
            metadata["cost_micros"] = str(usage.cost_micros)
        return ParleyError(
            self.kind.code, self.kind.reason, self.message, metadata, retry_after=self.retry_after
        )


def format_seconds(seconds: float) -> str:
    """Return a span to read, such as `90 s`: whole from 10 s on, so that calls that had the same limit say the same."""
    return f"{seconds:.0f} s" if seconds >= 9.5 else f"{seconds:.2g} s"
