"""The error type of all services, and its conversion to and from google.rpc.Status."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2
from msgspec import Struct

DOMAIN: Final = "parley"
DETAILS_KEY: Final = "grpc-status-details-bin"
DRAINING: Final = "DRAINING"
"""Reason of a call or stream that ended because its server is stopping; resume it on another server."""
INTERRUPTED: Final = "INTERRUPTED"
"""Reason of a call that the service stopped through no fault of the caller; try again."""
UNKNOWN_CALLER: Final = frozenset({"NO_CREDENTIALS", "BAD_CREDENTIALS", "EXPIRED_CREDENTIALS"})
"""Reasons to refuse a caller. Between services: one has another secret, for example during its replacement."""

# A peer drops trailing metadata of more than 8 KiB together with the status. Both of these are in it:
_MAX_MESSAGE: Final = 2000  # as it is percent-encoded on the wire; the details hold it once more
_MAX_STATUS: Final = 4096  # in bytes, before base64
_MAX_LISTED: Final = 1000
_MAX_DETAIL: Final = 256
_MAX_METADATA: Final = 512
_ELLIPSIS: Final = "…"
_PLAIN: Final = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")

_TRANSPORT_REASONS: Final = frozenset({DRAINING, INTERRUPTED})
_TRANSPORT_CODES: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNKNOWN,
        # gRPC reports a broken HTTP/2 stream as INTERNAL; our own INTERNAL always carries a reason.
        grpc.StatusCode.INTERNAL,
    }
)
_CODE_BY_NUMBER: Final[Mapping[int, grpc.StatusCode]] = {code.value[0]: code for code in grpc.StatusCode}


class ConfigurationError(Exception):
    """The settings do not allow a start; one line for each problem, which names the setting. Exit code 4."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class PartFailedError(Exception):
    """A part failed that the service needs; the message names the part. Exit code 1."""


class FieldViolation(Struct, frozen=True):
    """One bad field of a request: its path (`roster.agents[2].id`) and what is wrong with it."""

    field: str
    description: str


@dataclass(eq=False)
class ParleyError(Exception):
    """A failure that the caller gets as a status.

    `reason` is UPPER_SNAKE and stable; it is "" only for a status that gRPC itself produced.
    `retry_after` is in seconds; `resource` is (kind, name).
    """

    code: grpc.StatusCode
    reason: str
    message: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    violations: tuple[FieldViolation, ...] = ()
    retry_after: float | None = None
    resource: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


def invalid_argument(
    violations: Iterable[FieldViolation], *, reason: str = "INVALID_ARGUMENT", message: str | None = None
) -> ParleyError:
    """Return the error of an invalid request, whatever the state of the system; `violations` lists every bad field.

    If there are very many, the status has the first ones and their number.
    """
    found = tuple(violations)
    text = message or _list_violations(found) or "invalid argument"
    return ParleyError(grpc.StatusCode.INVALID_ARGUMENT, reason, text, violations=found)


def not_found(kind: str, name: str) -> ParleyError:
    """Return the error for a resource that does not exist; the reason is `KIND_NOT_FOUND`."""
    reason = f"{_to_upper_snake(kind)}_NOT_FOUND"
    return ParleyError(grpc.StatusCode.NOT_FOUND, reason, f"{kind} {name!r} not found", resource=(kind, name))


def failed_precondition(reason: str, message: str, metadata: Mapping[str, str] | None = None) -> ParleyError:
    """Return the error of a valid request that the present state does not allow; sending it again does not help."""
    return ParleyError(grpc.StatusCode.FAILED_PRECONDITION, reason, message, metadata or {})


def unavailable(reason: str, message: str, *, retry_after: float | None = None) -> ParleyError:
    """Return the error of a temporary failure, which may end after `retry_after` seconds if given."""
    return ParleyError(grpc.StatusCode.UNAVAILABLE, reason, message, retry_after=retry_after)


def permission_denied(reason: str, message: str, metadata: Mapping[str, str] | None = None) -> ParleyError:
    """Return the error of an authenticated caller that may not do this."""
    return ParleyError(grpc.StatusCode.PERMISSION_DENIED, reason, message, metadata or {})


def unauthenticated(reason: str, message: str) -> ParleyError:
    """Return the error of a caller that is not authenticated."""
    return ParleyError(grpc.StatusCode.UNAUTHENTICATED, reason, message)


def resource_exhausted(
    reason: str,
    message: str,
    *,
    retry_after: float | None = None,
    metadata: Mapping[str, str] | None = None,
) -> ParleyError:
    """Return the error of a used-up limit or budget; `retry_after` (seconds) if it fills again by itself."""
    return ParleyError(
        grpc.StatusCode.RESOURCE_EXHAUSTED, reason, message, metadata or {}, retry_after=retry_after
    )


def deadline_exceeded(message: str, *, reason: str = "DEADLINE_EXCEEDED") -> ParleyError:
    """Return the error of a call whose deadline passed before it was done."""
    return ParleyError(grpc.StatusCode.DEADLINE_EXCEEDED, reason, message)


def internal(
    message: str, *, reason: str = "INTERNAL", metadata: Mapping[str, str] | None = None
) -> ParleyError:
    """Return the error of a fault in the service itself."""
    return ParleyError(grpc.StatusCode.INTERNAL, reason, message, metadata or {})


def to_status(error: ParleyError) -> status_pb2.Status:
    """Return the error as a status with ErrorInfo and, if they apply, BadRequest, RetryInfo and ResourceInfo.

    Texts that are too long are shortened. If there are very many bad fields, the first ones are sent, and ErrorInfo's metadata
    has their number as `violations`.
    """
    status = status_pb2.Status(
        code=error.code.value[0], message=_shorten(error.message, _MAX_MESSAGE, _wire_length)
    )
    for detail in _details(error):
        status.details.add().Pack(detail)
    _add_violations(status, error.violations)
    return status


def from_status(status: status_pb2.Status) -> ParleyError:
    """Return the error of a status; its reason is "" if there is no ErrorInfo of ours."""
    error = ParleyError(_CODE_BY_NUMBER.get(status.code, grpc.StatusCode.UNKNOWN), "", status.message)
    for packed in status.details:
        info = error_details_pb2.ErrorInfo()
        bad = error_details_pb2.BadRequest()
        retry = error_details_pb2.RetryInfo()
        resource = error_details_pb2.ResourceInfo()
        if packed.Unpack(info) and info.domain == DOMAIN:
            error.reason, error.metadata = info.reason, dict(info.metadata)
        elif packed.Unpack(bad):
            error.violations = tuple(
                FieldViolation(each.field, each.description) for each in bad.field_violations
            )
        elif packed.Unpack(retry):
            error.retry_after = retry.retry_delay.ToTimedelta().total_seconds()
        elif packed.Unpack(resource):
            error.resource = (resource.resource_type, resource.resource_name)
    return error


def from_rpc_error(error: grpc.aio.AioRpcError) -> ParleyError:
    """Return the error that `to_status` sent; a status without details keeps its code and has the reason ""."""
    status = _status_of(error)
    if status is not None:
        return from_status(status)
    return ParleyError(error.code(), "", error.details() or error.code().name)


def is_transport(error: BaseException) -> bool:
    """Return whether the connection failed (lost, cut, draining), rather than the service answering with an error.

    Such a failure says nothing about the request. A passed deadline is not one of them.
    """
    if isinstance(error, grpc.aio.AioRpcError):
        error = from_rpc_error(error)
    if not isinstance(error, ParleyError):
        return False
    if error.reason:
        return error.reason in _TRANSPORT_REASONS
    return error.code in _TRANSPORT_CODES


def _list_violations(violations: Sequence[FieldViolation]) -> str:
    """Return the bad fields as text: as many as a message can hold, and the number of the others."""
    listed: list[str] = []
    room = _MAX_LISTED
    for each in violations:
        words = _shorten(f"{each.field}: {each.description}", _MAX_DETAIL)
        room -= _wire_length(words) + 2
        if room < 0:
            return "; ".join([*listed, f"and {len(violations) - len(listed)} more"])
        listed.append(words)
    return "; ".join(listed)


def _shorten(text: str, limit: int, measure: Callable[[str], int] | None = None) -> str:
    """Return the text, cut if it is longer than `limit` in bytes of UTF-8, or in units of `measure`."""
    length = measure or _utf8_length
    if len(text) <= limit and length(text) <= limit:
        return text
    left, end = limit - length(_ELLIPSIS), 0
    for each in text:
        left -= length(each)
        if left < 0:
            break
        end += 1
    return text[:end] + _ELLIPSIS


def _utf8_length(text: str) -> int:
    return len(text.encode(errors="replace"))


def _wire_length(text: str) -> int:
    """Return the length of a message on the wire, percent-encoded."""
    return len(quote(text, safe=_PLAIN, errors="replace"))


def _details(error: ParleyError) -> Iterable[Message]:
    yield error_details_pb2.ErrorInfo(
        reason=error.reason, domain=DOMAIN, metadata=dict(_metadata(error.metadata))
    )
    if error.retry_after is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromNanoseconds(round(error.retry_after * 1e9))
        yield retry
    if error.resource is not None:
        kind, name = error.resource
        yield error_details_pb2.ResourceInfo(
            resource_type=_shorten(kind, _MAX_DETAIL), resource_name=_shorten(name, _MAX_DETAIL)
        )


def _metadata(given: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    room = _MAX_METADATA
    for key, value in given.items():
        shortened = _shorten(value, _MAX_DETAIL)
        room -= _utf8_length(key) + _utf8_length(shortened)
        if room >= 0:
            yield key, shortened


def _add_violations(status: status_pb2.Status, violations: Sequence[FieldViolation]) -> None:
    if not violations:
        return
    bad = error_details_pb2.BadRequest()
    room = _MAX_STATUS - status.ByteSize() - 128  # for the count and what wraps a detail
    for each in violations:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=_shorten(each.field, _MAX_DETAIL), description=_shorten(each.description, _MAX_DETAIL)
        )
        room -= violation.ByteSize() + 3
        if room < 0:
            info = error_details_pb2.ErrorInfo()
            status.details[0].Unpack(info)
            info.metadata["violations"] = str(len(violations))
            status.details[0].Pack(info)
            break
        bad.field_violations.append(violation)
    status.details.add().Pack(bad)


def _status_of(error: grpc.aio.AioRpcError) -> status_pb2.Status | None:
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            try:
                return status_pb2.Status.FromString(value)
            except DecodeError:  # another server sent it
                return None
    return None


def _to_upper_snake(kind: str) -> str:
    return kind.upper().replace(" ", "_").replace("-", "_")
