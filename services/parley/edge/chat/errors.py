"""Errors in the form that OpenAI's clients read."""

import math
from collections.abc import Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from parley.edge.statuses import http_status
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument

_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
_FIELDS: Final = {
    "spec.question": "messages",
    "spec.context": "messages",
    "spec.format": "model",
    "request_id": "Idempotency-Key",
}
"""What a field of the debate comes from."""


def refuse(param: str, description: str) -> ParleyError:
    """Return the error of a request that names a parameter of it."""
    return invalid_argument([FieldViolation(param, description)])


def to_error_object(error: ParleyError) -> dict[str, Any]:
    """Return `{"error": {message, type, param, code}}`."""
    return _describe(http_status(error), error.message, _find_param(error), error.reason.lower() or None)


def to_error_response(error: ParleyError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the answer that says what went wrong, and when to try again if that helps."""
    waiting = {} if error.retry_after is None else {"Retry-After": str(math.ceil(error.retry_after))}
    given = {"Cache-Control": "no-store", **waiting, **(headers or {})}
    return JSONResponse(to_error_object(error), http_status(error), given)


def to_unknown_response(method: str, path: str, error: HTTPException) -> JSONResponse:
    """Return the answer to a path that is not served, or not by this method."""
    if allowed := (error.headers or {}).get("Allow"):
        message = f"{path} does not take {method}, but {allowed}"
    else:
        message = f"there is no {path} here; a debate is asked for at /v1/chat/completions, and /v1/models lists its formats and teams"
    return JSONResponse(
        _describe(error.status_code, message, None, "unknown_url"), error.status_code, error.headers
    )


def _describe(status: int, message: str, param: str | None, code: str | None) -> dict[str, Any]:
    otherwise = "invalid_request_error" if status < 500 else "server_error"
    return {
        "error": {
            "message": message,
            "type": _TYPES.get(status, otherwise),
            "param": param,
            "code": code,
        }
    }


def _find_param(error: ParleyError) -> str | None:
    if not error.violations:
        return "model" if error.reason == "MODEL_NOT_FOUND" else None
    field = error.violations[0].field
    return next((param for own, param in _FIELDS.items() if field.startswith(own)), field)
