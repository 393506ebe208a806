from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import openai
import pytest

from parley.gateway.failures import (
    AUTH,
    BAD_REQUEST,
    CONTENT_REFUSED,
    CONTEXT_OVERFLOW,
    FAILURE_KINDS,
    NO_SUCH_ENDPOINT,
    QUOTA,
    RATE_LIMIT,
    SERVER_ERROR,
    TIMEOUT,
    UNKNOWN_MODEL,
    FailureKind,
)
from parley.gateway.wire.errors import is_missing_endpoint, of_error_object, of_status, retry_after


def status_error(status: int, message: str = "no", **body: str) -> openai.APIStatusError:
    response = httpx2.Response(status, request=httpx2.Request("POST", "http://x/v1/responses"))
    return openai.APIStatusError(message, response=response, body={"message": message, **body})


@pytest.mark.parametrize(
    ("status", "message", "code", "kind"),
    [
        (400, "nonsense", "", BAD_REQUEST),
        (400, "This model's maximum context length is 8192 tokens.", "", CONTEXT_OVERFLOW),
        (400, "x", "context_length_exceeded", CONTEXT_OVERFLOW),
        (400, "foo/bar is not a valid model ID", "", UNKNOWN_MODEL),
        (400, "blocked by our content management policy", "", CONTENT_REFUSED),
        (401, "bad key", "invalid_api_key", AUTH),
        (402, "pay", "", QUOTA),
        (403, "forbidden", "", AUTH),
        (404, "The model `m` does not exist", "model_not_found", UNKNOWN_MODEL),
        (404, "model 'm' not found, try pulling it first", "", UNKNOWN_MODEL),
        (404, "Invalid URL (POST /v1/responses)", "", NO_SUCH_ENDPOINT),
        (408, "slow", "", TIMEOUT),
        (409, "conflict", "", SERVER_ERROR),
        (422, "nonsense", "", BAD_REQUEST),
        (429, "slow down", "rate_limit_exceeded", RATE_LIMIT),
        (429, "You exceeded your current quota", "insufficient_quota", QUOTA),
        (500, "boom", "", SERVER_ERROR),
        (503, "overloaded", "", SERVER_ERROR),
    ],
)
def test_every_status_finds_its_failure_kind(status: int, message: str, code: str, kind: FailureKind) -> None:
    failure = of_status(status_error(status, message, code=code))
    assert failure.kind is kind
    assert failure.status == status
    assert failure.message.startswith(str(status))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "The server had an error", "code": "server_error"}, SERVER_ERROR),
        ({"message": "slow down", "code": "rate_limit_exceeded"}, RATE_LIMIT),
        ({"message": "Provider returned error", "code": 429}, RATE_LIMIT),
        ({"message": "too long", "code": "context_length_exceeded"}, CONTEXT_OVERFLOW),
        ("something", SERVER_ERROR),
        (None, SERVER_ERROR),
    ],
)
def test_an_error_inside_an_answer_finds_its_failure_kind(error: object, kind: FailureKind) -> None:
    assert of_error_object(error).kind is kind


def test_only_a_path_that_is_not_there_is_a_missing_endpoint() -> None:
    assert is_missing_endpoint(status_error(404, "Not Found"))
    assert is_missing_endpoint(status_error(405, "Method Not Allowed"))
    assert is_missing_endpoint(status_error(501, "not implemented"))
    assert not is_missing_endpoint(status_error(404, "The model `m` does not exist"))
    for status in (400, 401, 403, 429, 500):
        assert not is_missing_endpoint(status_error(status))


def test_retry_after_is_read_in_all_its_forms() -> None:
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after-ms": "300", "retry-after": "9"}) == pytest.approx(0.3)
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert retry_after({"retry-after": in_a_minute}) == pytest.approx(60, abs=2)
    for nothing in ({}, {"retry-after": "soon"}, {"retry-after": "inf"}, {"retry-after": "nan"}):
        assert retry_after(nothing) is None


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        *[("1e300", 86_400), ("-7", 0), ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400)],
        *[("Mon, 01 Jan 2024 00:00:00 +99999999999999", None), ("", None), ("9" * 5000, None)],
    ],
)
def test_an_absurd_retry_after_is_bounded_or_not_heard(said: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": said}) == seconds


def test_the_table_is_coherent() -> None:
    for kind in FAILURE_KINDS:
        assert not kind.again or kind.next_route, kind.name
        assert not kind.alarm or not kind.again, kind.name
    assert len({kind.name for kind in FAILURE_KINDS}) == len(FAILURE_KINDS)
