"""Finds the failure kind of what an endpoint, or the way to it, came up with."""

import errno
import math
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import httpx2

from parley.gateway.failures import (
    AUTH,
    BAD_REQUEST,
    CONNECTION,
    CONTENT_REFUSED,
    CONTEXT_OVERFLOW,
    EMPTY_ANSWER,
    NO_SUCH_ENDPOINT,
    OWN_LIMIT,
    QUOTA,
    RATE_LIMIT,
    SERVER_ERROR,
    TIMEOUT,
    TRUNCATED,
    UNKNOWN_MODEL,
    UNREADABLE_ANSWER,
    Failure,
    FailureKind,
)
from parley.gateway.prompt.sanitizer import to_line
from parley.gateway.wire.openai_parts import APIConnectionError, APIStatusError

TRANSPORT_ERRORS: Final = (
    APIConnectionError,
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.InvalidURL,
    aiohttp.ClientError,
    OSError,
)
"""What a broken way to an endpoint raises; the transport lets some of aiohttp's own errors through."""

_OWN_LIMITS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What the machine says where it is this process that has no more of something: no provider has failed."""
_MAX_RETRY_SECONDS: Final = 86_400.0
_MAX_MATCHED: Final = 2000
"""Characters that are looked through for what an error means: some patterns take long on long texts."""
_QUOTA: Final = re.compile(
    r"insufficient[_ ](quota|credit|balance|funds)|exceeded your current quota|billing", re.IGNORECASE
)
_OVERFLOW: Final = re.compile(
    r"context[_ ]length|maximum context|context (size|window)|exceeds? the (available|model'?s?)? ?context"
    r"|prompt is too long|too many tokens|input is too long|reduce the length",
    re.IGNORECASE,
)
_MODEL: Final = re.compile(r"\bmodels?\b|no endpoints found", re.IGNORECASE)
_NO_MODEL: Final = re.compile(
    r"(is )?not a valid model|invalid model|unknown model|unsupported model|no such model"
    r"|model\b.{0,200}\b(does not exist|not found|not exist|is not available|is not supported)",
    re.IGNORECASE,
)
_FILTERED: Final = re.compile(r"content[_ ](filter|policy)|content management policy", re.IGNORECASE)
_BY_STATUS: Final[Mapping[int, FailureKind]] = {
    401: AUTH,
    402: QUOTA,
    403: AUTH,
    408: TIMEOUT,
    409: SERVER_ERROR,
    425: SERVER_ERROR,
    501: NO_SUCH_ENDPOINT,
}
_BY_CODE: Final[Mapping[str, FailureKind]] = {
    "insufficient_quota": QUOTA,
    "insufficient_credits": QUOTA,
    "rate_limit_exceeded": RATE_LIMIT,
    "rate_limit_error": RATE_LIMIT,
    "too_many_requests": RATE_LIMIT,
    "invalid_api_key": AUTH,
    "authentication_error": AUTH,
    "permission_error": AUTH,
    "model_not_found": UNKNOWN_MODEL,
    "context_length_exceeded": CONTEXT_OVERFLOW,
    "exceed_context_size_error": CONTEXT_OVERFLOW,
    "content_filter": CONTENT_REFUSED,
    "content_policy_violation": CONTENT_REFUSED,
}


def text_of(error: APIStatusError) -> str:
    """Return what the endpoint said about its error, for matching; never shown."""
    said = error.body
    if isinstance(said, Mapping):
        return " ".join(
            str(said.get(name) or "")[:_MAX_MATCHED]
            for name in ("message", "code", "type", "param", "detail", "error")
        )
    return str(said or error.message)[:_MAX_MATCHED]


def is_missing_endpoint(error: APIStatusError) -> bool:
    """Return whether the path is not there at all: not an unknown model, not a key or quota that was refused."""
    if error.status_code in {405, 501}:
        return True
    return error.status_code == 404 and not _is_unknown_model(error)


def of_status(error: APIStatusError) -> Failure:
    """Return the failure that an HTTP error status stands for."""
    status = error.status_code
    if 300 <= status < 400:
        return Failure(
            NO_SUCH_ENDPOINT, f"{status} {_describe_redirect(error.response.headers)}", status=status
        )
    return Failure(
        _kind(error, status),
        f"{status} {_first_line(error.body, error.message)}",
        status=status,
        retry_after=retry_after(error.response.headers),
    )


def of_error_object(error: object) -> Failure:
    """Return the failure that an error in mid-stream, or in a body of status 200, stands for."""
    given: Mapping[str, Any] = error if isinstance(error, Mapping) else {"message": error}
    words = " ".join(str(given.get(name) or "") for name in ("message", "code", "type"))
    kind = _find_kind_by_code(given) or _find_kind_by_words(words) or SERVER_ERROR
    code = given.get("code")
    if kind is SERVER_ERROR and isinstance(code, int):
        kind = {402: QUOTA, 429: RATE_LIMIT, 401: AUTH, 403: AUTH, 408: TIMEOUT, 400: BAD_REQUEST}.get(
            code, kind
        )
    return Failure(kind, f"error in the answer: {_first_line(given, '')}")


def of_empty_answer(*, truncated: bool, max_output_tokens: int) -> Failure:
    """Return the failure of an answer without text: its tokens may have been spent before the first word."""
    if not truncated:
        return Failure(EMPTY_ANSWER, "the answer holds no text")
    limit = f"all {max_output_tokens} tokens" if max_output_tokens else "all the tokens that it had"
    return Failure(
        TRUNCATED,
        f"the model used {limit} to reason and wrote no answer; raise max_output_tokens, or take a model that reasons less",
    )


def of_transport(error: BaseException) -> Failure:
    """Return the failure of the way to an endpoint: no connection, a broken one, or silence."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
        if isinstance(root, OSError) and root.errno in _OWN_LIMITS:
            said = os.strerror(root.errno).lower()
            return Failure(OWN_LIMIT, f"this gateway has no room for another connection: {said}")
        if isinstance(root, aiohttp.ClientConnectorError):
            return Failure(CONNECTION, f"cannot connect to {root.host}:{root.port}: {_os_error(root)}")
    # The transport calls every lost connection a timeout; only aiohttp's own word can be believed.
    if isinstance(root, TimeoutError):
        return Failure(TIMEOUT, "the endpoint was silent for too long")
    if isinstance(root, aiohttp.ClientHttpProxyError):
        return Failure(CONNECTION, f"the proxy refuses: {root.status} {to_line(root.message, 120)}")
    if isinstance(root, aiohttp.ClientResponseError | aiohttp.InvalidURL | UnicodeError):
        return Failure(UNREADABLE_ANSWER, f"the answer is not proper HTTP: {type(root).__name__}")
    return Failure(CONNECTION, f"the connection was lost: {type(root).__name__}")


def was_not_sent(error: BaseException) -> bool:
    """Return whether a broken way to an endpoint says that it never got the request."""
    return _is_caused_by(
        error,
        aiohttp.ClientConnectorError,
        aiohttp.ConnectionTimeoutError,
        aiohttp.ClientHttpProxyError,
        aiohttp.InvalidURL,
        httpx2.InvalidURL,
    )


def has_no_answer(error: BaseException) -> bool:
    """Return whether the way to an endpoint broke before an answer began, whether or not the request was sent."""
    # The transport says ConnectTimeout of a connection that is lost after that, too.
    return _is_caused_by(
        error, httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.InvalidURL
    )


def _is_caused_by(error: BaseException | None, *kinds: type[BaseException]) -> bool:
    while error is not None and not isinstance(error, kinds):
        error = error.__cause__
    return error is not None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return seconds that the endpoint asks to wait, a day at most; None if it does not say, or not so that it can be read."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        return _clamp(seconds) if math.isfinite(seconds) else None
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return _clamp((moment - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _clamp(seconds: float) -> float:
    return min(max(seconds, 0.0), _MAX_RETRY_SECONDS)


def _kind(error: APIStatusError, status: int) -> FailureKind:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return SERVER_ERROR
    if status in {404, 405}:
        return UNKNOWN_MODEL if _is_unknown_model(error) else NO_SUCH_ENDPOINT
    if status == 429:
        return QUOTA if _QUOTA.search(text_of(error)) else RATE_LIMIT
    by_code = _find_kind_by_code(error.body) if isinstance(error.body, Mapping) else None
    if by_code is not None and by_code in {CONTEXT_OVERFLOW, UNKNOWN_MODEL, CONTENT_REFUSED, QUOTA}:
        return by_code
    return _find_kind_by_words(text_of(error)) or BAD_REQUEST


def _is_unknown_model(error: APIStatusError) -> bool:
    return error.code == "model_not_found" or error.param == "model" or bool(_MODEL.search(text_of(error)))


def _find_kind_by_code(error: Mapping[str, Any]) -> FailureKind | None:
    for name in ("code", "type"):
        kind = _BY_CODE.get(str(error.get(name)))
        if kind is not None:
            return kind
    return None


def _find_kind_by_words(words: str) -> FailureKind | None:
    if _OVERFLOW.search(words):
        return CONTEXT_OVERFLOW
    if _NO_MODEL.search(words):
        return UNKNOWN_MODEL
    if _FILTERED.search(words):
        return CONTENT_REFUSED
    return None


def _describe_redirect(headers: Mapping[str, str]) -> str:
    try:
        host = urlsplit(headers.get("location", "")).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    where = f"redirects to {to_line(host, 120)}" if host else "redirects"
    return f"the endpoint {where}; no redirect is followed, so base_url must be the address itself"


def _first_line(body: object, otherwise: str) -> str:
    """Return what the endpoint said, as one short line."""
    said: object = body
    if isinstance(said, Mapping):
        said = said.get("message") or said.get("detail") or said.get("error") or said.get("code") or ""
    text = str(said or otherwise)
    if text.lstrip().startswith("<"):  # a page of some proxy
        text = re.sub(r"<[^>]*>", " ", text[:2000])
    return to_line(text, 200)


def _os_error(error: aiohttp.ClientConnectorError) -> str:
    cause = error.os_error
    said = cause.strerror or str(cause) or type(cause).__name__
    if cause.errno and "Connect call failed" in said:  # asyncio's words, which repeat the address
        said = os.strerror(cause.errno).lower()
    return to_line(said, 120)
