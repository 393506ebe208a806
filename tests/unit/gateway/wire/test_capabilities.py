"""What is learned from an endpoint that refuses something, and for how long."""

from typing import Any

import httpx2
import openai
import pytest

from parley.gateway.prompt.tools import Reasoning
from parley.gateway.wire.api import Api
from parley.gateway.wire.api_choice import LESSON_SECONDS
from parley.gateway.wire.capabilities import EndpointCapabilities

SCHEMA: dict[Api, dict[str, Any]] = {
    Api.RESPONSES: {"text": {"format": {"type": "json_schema"}}},
    Api.CHAT: {"response_format": {"type": "json_schema"}},
}
BOTH = pytest.mark.parametrize("api", list(Api))


def refusal(message: str, **body: str) -> openai.APIStatusError:
    response = httpx2.Response(400, request=httpx2.Request("POST", "http://x/v1/responses"))
    return openai.APIStatusError(message, response=response, body={"message": message, **body})


@BOTH
@pytest.mark.parametrize(
    "message",
    [
        "Streaming is not supported with response_format json_schema",
        "json_schema cannot be combined with stream=true",
        "Structured outputs can not be streamed",
    ],
)
def test_a_stream_that_is_refused_beside_a_schema_keeps_the_schema_and_the_stream_of_texts(
    api: Api, message: str
) -> None:
    known = EndpointCapabilities(api)
    assert known.learn(api, "m", {"stream": True, **SCHEMA[api]}, refusal(message))
    assert known.takes_schema("m", "")
    assert not known.needs_words("m", "")
    assert not known.streams("m", with_schema=True)
    assert known.streams("m", with_schema=False)
    assert known.streams("other", with_schema=True)


@BOTH
def test_a_model_that_streams_nothing_streams_nothing_beside_a_schema_either(api: Api) -> None:
    known = EndpointCapabilities(api)
    told = refusal("Your organization must be verified to stream this model.", param="stream")
    assert known.learn(api, "m", {"stream": True}, told)
    assert not known.streams("m", with_schema=False)
    assert not known.streams("m", with_schema=True)


@BOTH
def test_words_of_a_prompt_do_not_cost_texts_their_stream(api: Api) -> None:
    known = EndpointCapabilities(api)
    assert not known.learn(api, "m", {"stream": True}, refusal("cannot read: Which stream is the longest?"))
    assert known.streams("m", with_schema=False)


@BOTH
def test_a_schema_that_is_refused_in_one_piece_too_is_said_in_words_and_streams(api: Api) -> None:
    known = EndpointCapabilities(api)
    told = refusal("Unknown field json_schema; known are: model, messages, stream")
    assert known.learn(api, "m", {"stream": True, **SCHEMA[api]}, told)
    assert known.learn(api, "m", SCHEMA[api], told)
    assert not known.takes_schema("m", "")
    assert known.streams("m", with_schema=False)


def test_stream_options_that_are_refused_are_not_the_stream() -> None:
    known = EndpointCapabilities(Api.CHAT)
    sent = {"stream": True, "stream_options": {}, **SCHEMA[Api.CHAT]}
    assert known.learn(Api.CHAT, "m", sent, refusal("Unsupported parameter: 'stream_options'."))
    assert known.find_refused(Api.CHAT, "m") == {"stream_options"}
    assert known.streams("m", with_schema=True)


THOUGHT = Reasoning(({"type": "reasoning"},), {"reasoning_content": "Is it?"})
ASKED: dict[str, Any] = {"messages": [{"role": "assistant", "tool_calls": []}], "tools": [{}]}


def refuse_as_missing() -> openai.APIStatusError:
    return refusal("reasoning_content is missing in assistant tool call message at index 2")


def test_reasoning_that_was_missed_is_sent_and_no_refusal_of_tools() -> None:
    known = EndpointCapabilities(Api.CHAT)
    assert known.takes_back(Api.CHAT, "m", THOUGHT).fields == {}
    assert not known.learn_no_tools("m", ASKED, refuse_as_missing())
    assert known.learn(Api.CHAT, "m", ASKED, refuse_as_missing())
    assert known.takes_back(Api.CHAT, "m", THOUGHT).fields == THOUGHT.fields
    assert not known.learn(Api.CHAT, "m", ASKED, refuse_as_missing()), "it was sent, and that did not help"


def test_reasoning_that_is_refused_is_left_out() -> None:
    known = EndpointCapabilities(Api.RESPONSES)
    sent = {"input": [{"type": "reasoning"}], "tools": [{}]}
    told = refusal("The encrypted content of item rs_1 could not be verified.")
    assert known.learn(Api.RESPONSES, "m", sent, told)
    assert known.takes_back(Api.RESPONSES, "m", THOUGHT) == Reasoning()
    assert not known.learn(Api.RESPONSES, "m", {"input": []}, told)


def test_what_a_refusal_seems_to_say_is_learned_once_the_endpoint_takes_the_other_request() -> None:
    known = EndpointCapabilities(Api.CHAT)
    call = known.of_call()
    assert call.learn(Api.CHAT, "m", {"temperature": 1}, refusal("no", param="temperature"))
    assert call.find_refused(Api.CHAT, "m") == {"temperature"}
    assert known.find_refused(Api.CHAT, "m") == known.of_call().find_refused(Api.CHAT, "m") == frozenset()
    call.confirm()
    assert known.find_refused(Api.CHAT, "m") == {"temperature"}


def test_what_did_not_help_is_learned_of_nobody() -> None:
    """A refusal that repeats a prompt, or a caller's own schema, takes no parameter and no schema from others."""
    known = EndpointCapabilities(Api.CHAT)
    call = known.of_call()
    for number in (1, 2):
        told = refusal(f"invalid schema for response_format: the temperature is high (request {number}f3)")
        sent = SCHEMA[Api.CHAT] | ({"temperature": 1} if number == 1 else {})
        assert call.learn(Api.CHAT, "m", sent, told, "theirs")
    assert call.find_refused(Api.CHAT, "m") == {"temperature"}
    call.confirm()
    assert known.find_refused(Api.CHAT, "m") == frozenset()
    assert not known.takes_schema("m", "theirs")
    assert known.takes_schema("m", "ours")
    assert known.needs_words("m", "theirs")
    assert not known.needs_words("m", "ours")


def test_all_that_helped_is_learned() -> None:
    known = EndpointCapabilities(Api.CHAT)
    call = known.of_call()
    for name in ("temperature", "max_tokens"):
        assert call.learn(Api.CHAT, "m", {name: 1}, refusal(f"Unsupported parameter: '{name}'."))
    call.confirm()
    assert known.find_refused(Api.CHAT, "m") == {"temperature", "max_tokens"}


def test_reasoning_without_a_first_tag_is_remembered_only_if_it_comes_twice_in_a_row() -> None:
    known = EndpointCapabilities(Api.CHAT)
    for untagged, remembered in (
        (True, False),
        (False, False),
        (True, False),
        (True, True),
        (False, False),
    ):
        known.note_reasoning("m", untagged=untagged)
        assert known.reasons_untagged("m") is remembered
    assert not known.reasons_untagged("n")


def test_every_lesson_is_forgotten_after_an_hour() -> None:
    now = 0.0
    known = EndpointCapabilities(Api.CHAT, now=lambda: now)
    schema = {"stream": True, **SCHEMA[Api.CHAT]}
    for sent, told in (
        ({"temperature": 1}, refusal("no", param="temperature")),
        ({"stream": True}, refusal("no", param="stream")),
        (SCHEMA[Api.CHAT], refusal("Unknown field json_schema")),
        (ASKED, refuse_as_missing()),
    ):
        assert known.learn(Api.CHAT, "m", sent, told)
        known.confirm()
    assert known.learn_no_tools("m", {"tools": [], **schema}, refusal("m does not support tools"))
    known.learn_schema_ignored("n")
    for _ in range(2):
        known.note_reasoning("m", untagged=True)

    def lessons() -> set[bool]:
        return {
            known.find_refused(Api.CHAT, "m") == {"temperature"},
            not known.streams("m", with_schema=False),
            not known.takes_schema("m", ""),
            not known.takes_tools("m", with_schema=False),
            bool(known.takes_back(Api.CHAT, "m", THOUGHT).fields),
            known.needs_words("n", ""),
            known.reasons_untagged("m"),
        }

    now = LESSON_SECONDS - 1
    assert lessons() == {True}
    now = LESSON_SECONDS
    assert lessons() == {False}
