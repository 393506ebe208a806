"""Which API is asked by, and how long what turned out holds."""

import httpx2
import openai
import pytest

from parley.gateway.failures import CUT_ANSWER, SERVER_ERROR, Failure
from parley.gateway.wire.api import Api
from parley.gateway.wire.api_choice import LESSON_SECONDS, ApiChoice

CHAT, RESPONSES = Api.CHAT, Api.RESPONSES


class Time:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def refusal(status: int, message: str, headers: dict[str, str] | None = None) -> openai.APIStatusError:
    request = httpx2.Request("POST", "http://x/v1/chat/completions")
    response = httpx2.Response(status, request=request, headers=headers)
    return openai.APIStatusError(message, response=response, body={"message": message})


@pytest.mark.parametrize("api", list(Api))
def test_a_fixed_api_stays_whatever_the_endpoint_says(api: Api) -> None:
    choice = ApiChoice(api)
    assert not choice.learn_missing(api, "m", refusal(404, "Not Found"))
    assert choice.choose_other(api, "m", refusal(500, "broken"), with_schema=False) is None
    assert choice.of("m") is api


@pytest.mark.parametrize("first", list(Api))
def test_a_path_that_is_not_there_is_left_for_a_while(first: Api) -> None:
    now = Time()
    choice = ApiChoice(None, first, now)
    assert choice.learn_missing(first, "m", refusal(404, "Not Found"))
    assert choice.of("m") is choice.of("another") is not first
    now.seconds += LESSON_SECONDS
    assert choice.of("m") is first


def test_an_endpoint_with_neither_path_is_asked_anew_by_the_next_call() -> None:
    choice = ApiChoice(None)
    assert choice.learn_missing(CHAT, "m", refusal(404, "Not Found"))
    assert not choice.learn_missing(RESPONSES, "m", refusal(404, "Not Found"))
    assert choice.of("m") is CHAT


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Cannot determine type of 'item'"),
        (400, "'messages' is a required property"),
        (422, "[{'loc': ['body', 'input'], 'msg': 'Field required'}]"),
        (404, "This model is only supported in v1/responses and not in v1/chat/completions."),
        (500, "Internal Server Error"),
        (502, "Bad Gateway"),
    ],
)
def test_what_another_api_may_help_against_is_asked_by_it_once_and_remembered(
    status: int, message: str
) -> None:
    now = Time()
    choice = ApiChoice(None, now=now)
    assert choice.choose_other(CHAT, "m", refusal(status, message), with_schema=False) is RESPONSES
    choice.record_answer(RESPONSES, "m", with_schema=False)
    assert choice.of("m") is RESPONSES
    assert choice.of("another") is CHAT
    now.seconds += LESSON_SECONDS
    assert choice.of("m") is CHAT


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "temperature has to be below 2"),
        (400, "This model's maximum context length is 4096 tokens"),
        (400, "Invalid model: m"),
        (401, "Invalid parameter: api key"),
        (404, "The model `m` does not exist"),
        (429, "too many requests with this schema"),
    ],
)
def test_what_no_other_api_helps_against_is_not_asked_twice(status: int, message: str) -> None:
    assert ApiChoice(None).choose_other(CHAT, "m", refusal(status, message), with_schema=False) is None


def test_the_other_api_is_left_for_a_while_where_it_did_not_help() -> None:
    now = Time()
    choice = ApiChoice(None, now=now)
    outage = refusal(500, "broken")
    choice.record_other_failed("m")
    assert choice.choose_other(CHAT, "m", outage, with_schema=False) is None
    assert choice.choose_other(CHAT, "another", outage, with_schema=False) is RESPONSES
    now.seconds += LESSON_SECONDS
    assert choice.choose_other(CHAT, "m", outage, with_schema=False) is RESPONSES


def test_an_error_after_answers_is_an_outage() -> None:
    choice = ApiChoice(None)
    choice.record_answer(CHAT, "m", with_schema=False)
    outage = refusal(500, "broken")
    assert choice.choose_other(CHAT, "m", outage, with_schema=False) is None
    assert choice.choose_other(CHAT, "m", outage, with_schema=True) is RESPONSES


def test_who_says_when_to_come_back_is_believed() -> None:
    busy = refusal(503, "overloaded", {"retry-after": "2"})
    assert ApiChoice(None).choose_other(CHAT, "m", busy, with_schema=False) is None


def test_an_error_in_a_stream_counts_as_one_before_it_and_a_broken_stream_does_not() -> None:
    choice = ApiChoice(None)
    assert choice.choose_other(CHAT, "m", Failure(SERVER_ERROR, "error in the answer"), with_schema=False)
    assert choice.choose_other(CHAT, "m", Failure(CUT_ANSWER, "cut off"), with_schema=False) is None


def test_the_api_that_is_being_tried_has_no_other_one() -> None:
    assert ApiChoice(None).choose_other(RESPONSES, "m", refusal(500, "broken"), with_schema=False) is None


def test_where_a_path_is_missing_the_other_one_is_no_way_out() -> None:
    choice = ApiChoice(None)
    assert choice.learn_missing(CHAT, "m", refusal(404, "Not Found"))
    assert choice.choose_other(RESPONSES, "m", refusal(500, "broken"), with_schema=False) is None
