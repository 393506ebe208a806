"""What can go wrong with a model's answer, as values, and the error bodies that real servers send."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum
from typing import Any


class FaultKind(StrEnum):
    """What happens instead of an answer, or to it. On a call that is not streamed, "in mid-stream" means half
    way through the body, and an error in mid-stream is a plain 500."""

    ERROR = "error"
    """An HTTP error status with a body."""
    DROP_BEFORE_ANY_BYTE = "drop-before-any-byte"
    DROP_AFTER_HEADERS = "drop-after-headers"
    DROP_MID_STREAM = "drop-mid-stream"
    ERROR_MID_STREAM = "error-mid-stream"
    STALL_MID_STREAM = "stall-mid-stream"
    """The answer begins and never goes on; the connection stays open."""
    HANG = "hang"
    """Nothing at all is sent; the connection stays open until the client goes."""
    WRONG_JSON = "wrong-json"
    """The HTTP body, or a streamed event of it, is JSON that breaks off."""
    CONTROL_CHARACTERS = "control-characters"
    """The text holds NULs, escapes and a direction override; the JSON round it is right."""
    BAD_UTF8 = "bad-utf8"
    """The HTTP body holds bytes that are not UTF-8."""
    HUGE_ANSWER = "huge-answer"
    EMPTY_ANSWER = "empty-answer"
    CUT_SHORT = "cut-short"
    """The answer ends for its length (finish_reason length, status incomplete) half way."""
    SPENT_ON_REASONING = "spent-on-reasoning"
    """The answer ends for its length before its first word: all of it is reasoning."""
    BROKEN_STRUCTURE = "broken-structure"
    """The text is JSON that breaks off."""
    WRONG_STRUCTURE = "wrong-structure"
    """The text is JSON, and not of the schema asked for."""


TEXT_FAULTS = frozenset(
    {
        FaultKind.CONTROL_CHARACTERS,
        FaultKind.HUGE_ANSWER,
        FaultKind.EMPTY_ANSWER,
        FaultKind.CUT_SHORT,
        FaultKind.SPENT_ON_REASONING,
        FaultKind.BROKEN_STRUCTURE,
        FaultKind.WRONG_STRUCTURE,
    }
)
"""Faults of the text of an answer: they never meet calls that have none (embeddings, the list of models)."""


class ErrorShape(StrEnum):
    """How an error body looks."""

    OPENAI = "openai"
    """{"error": {"message", "type", "param", "code"}}"""
    DETAIL = "detail"
    """{"detail": message}, as servers built on FastAPI answer for a path they do not have."""
    HTML = "html"
    """A page, as a proxy in front of the server answers."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    `status`, `message`, `code`, `retry_after` (seconds), `retry_after_as_date` and `shape` speak of
    ERROR; `after_chunks` is how many words of a stream go out before a fault in mid-stream; `size` is the number
    of characters of a HUGE_ANSWER.
    """

    kind: FaultKind
    status: int = 0
    message: str = ""
    code: str | None = None
    param: str | None = None
    retry_after: float | None = None
    retry_after_as_date: bool = False
    shape: ErrorShape = ErrorShape.OPENAI
    after_chunks: int = 2
    size: int = 4_000_000

    def __post_init__(self) -> None:
        is_page = self.shape is ErrorShape.HTML and self.status == 200
        if self.kind is FaultKind.ERROR and not (is_page or 400 <= self.status <= 599):
            raise ValueError(f"an error's status is between 400 and 599, not {self.status}")

    @property
    def name(self) -> str:
        """The kind, and the status or code of an error: what the ledger calls it."""
        if self.kind is FaultKind.ERROR:
            return self.code or str(self.status)
        return self.kind.value

    def headers(self) -> dict[str, str]:
        """Return the error's headers: its content type and Retry-After."""
        headers = {"Content-Type": "text/html" if self.shape is ErrorShape.HTML else "application/json"}
        if self.retry_after is None:
            return headers
        if self.retry_after_as_date:
            moment = datetime.now(UTC) + timedelta(seconds=self.retry_after)
            headers["Retry-After"] = format_datetime(moment, usegmt=True)
        else:
            headers["Retry-After"] = f"{self.retry_after:g}"
        return headers

    def body(self) -> bytes:
        """Return the error's body in its shape."""
        usual_type, usual_code, usual_message = _USUAL.get(
            self.status, _USUAL[400 if self.status < 500 else 500]
        )
        message = self.message or usual_message
        if self.shape is ErrorShape.HTML:
            page = f"<html><head><title>{self.status}</title></head><body><h1>{message}</h1></body></html>"
            return page.encode()
        if self.shape is ErrorShape.DETAIL:
            return json.dumps({"detail": message}).encode()
        content: Mapping[str, Any] = {
            "message": message,
            "type": usual_type,
            "param": self.param,
            "code": self.code or usual_code,
        }
        return json.dumps({"error": content}).encode()


def error(
    status: int,
    message: str = "",
    *,
    code: str | None = None,
    param: str | None = None,
    retry_after: float | None = None,
    retry_after_as_date: bool = False,
    shape: ErrorShape = ErrorShape.OPENAI,
) -> Fault:
    """Return an HTTP error; what is left out is what OpenAI sends with that status."""
    return Fault(
        kind=FaultKind.ERROR,
        status=status,
        message=message,
        code=code,
        param=param,
        retry_after=retry_after,
        retry_after_as_date=retry_after_as_date,
        shape=shape,
    )


def context_overflow(limit: int = 8192, asked: int = 9000) -> Fault:
    """Return the 400 for a prompt that is longer than the model's context, both in tokens."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {asked} tokens. "
        "Please reduce the length of the messages."
    )
    return error(400, message, code="context_length_exceeded", param="messages")


def unknown_model(model: str) -> Fault:
    """Return the 404 for a model that the server does not have."""
    message = f"The model `{model}` does not exist or you do not have access to it."
    return error(404, message, code="model_not_found")


_USUAL: Mapping[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "The request is not valid."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    402: ("insufficient_quota", "insufficient_credits", "Insufficient credits. Add more to go on."),
    403: ("permission_error", "forbidden", "You are not allowed to use this model."),
    404: ("invalid_request_error", None, "Not Found"),
    408: ("timeout_error", "request_timeout", "The request timed out."),
    409: ("conflict_error", "conflict", "The request conflicts with another one."),
    429: ("rate_limit_error", "rate_limit_exceeded", "Rate limit reached. Please try again later."),
    500: ("server_error", None, "The server had an error while processing your request."),
    503: (
        "service_unavailable_error",
        "overloaded",
        "The engine is currently overloaded. Please try again later.",
    ),
}
