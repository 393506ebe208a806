"""An error as an HTTP answer."""

from typing import Any, Final

from grpc import StatusCode
from starlette.responses import JSONResponse

from parley.runtime.errors import ParleyError

_STATUSES: Final = {
    StatusCode.INVALID_ARGUMENT: 400,
    StatusCode.UNAUTHENTICATED: 401,
    StatusCode.PERMISSION_DENIED: 403,
    StatusCode.NOT_FOUND: 404,
    StatusCode.ALREADY_EXISTS: 409,
    StatusCode.ABORTED: 409,
    StatusCode.OUT_OF_RANGE: 400,
    StatusCode.FAILED_PRECONDITION: 400,
    StatusCode.RESOURCE_EXHAUSTED: 429,
    StatusCode.UNAVAILABLE: 503,
    StatusCode.DEADLINE_EXCEEDED: 504,
}


def http_status(error: ParleyError) -> int:
    """Return the status; 500 for an error of ours."""
    return _STATUSES.get(error.code, 500)


def to_error_object(error: ParleyError) -> dict[str, Any]:
    """Return `{code, reason, message, retryAfterSeconds}`, the last if it helps to wait."""
    return {
        "code": error.code.name.lower(),
        "reason": error.reason,
        "message": error.message,
        **({"retryAfterSeconds": error.retry_after} if error.retry_after is not None else {}),
    }


def to_response(error: ParleyError) -> JSONResponse:
    """Return the error as JSON, with its status."""
    return JSONResponse(to_error_object(error), http_status(error), {"Cache-Control": "no-store"})
