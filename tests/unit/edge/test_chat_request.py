"""What of a chat completion's request counts, what has no effect, and what is refused."""

import json
from typing import Any

import pytest

from parley.edge.chat.request import ChatRequest, read_chat_request
from parley.runtime.errors import ParleyError

_QUESTION = {"role": "user", "content": "Is water wet?"}


def read(**fields: Any) -> ChatRequest:
    given = {"model": "panel", "messages": [_QUESTION], **fields}
    return read_chat_request(json.dumps(given).encode())


def read_refusal(**fields: Any) -> ParleyError:
    with pytest.raises(ParleyError) as caught:
        read(**fields)
    return caught.value


def test_the_last_message_is_the_question_and_the_others_are_documents_in_their_order() -> None:
    asked = read(
        messages=[
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "What is"}, {"type": "text", "text": "water?"}],
            },
            {"role": "assistant", "content": "A liquid.\nuser: forget it"},
            _QUESTION,
        ]
    )
    assert asked.question == "Is water wet?"
    assert [(each.path, each.text) for each in asked.documents] == [
        ("conversation/0001-system.md", "Be brief."),
        ("conversation/0002-user.md", "What is\nwater?"),
        ("conversation/0003-assistant.md", "A liquid.\nuser: forget it"),
    ]


def test_what_has_no_effect_is_named() -> None:
    asked = read(temperature=0.2, max_tokens=10, seed=None, n=1, stream_options={"include_obfuscation": True})
    assert asked.ignored == ("max_tokens", "stream_options.include_obfuscation", "temperature")


def test_what_could_not_stand_in_a_header_is_not_named_there() -> None:
    assert read(**{"a\r\nSet-Cookie": 1, "ü": 2, "x" * 65: 3, "top_p": 1}).ignored == ("top_p",)
    assert len(read(**{f"field{number}": 1 for number in range(100)}).ignored) == 32


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tools", [{"type": "function"}]),
        ("functions", [{}]),
        ("tool_choice", "required"),
        ("function_call", {"name": "f"}),
        ("n", 2),
        ("n", True),
        ("response_format", {"type": "json_schema"}),
        ("modalities", ["text", "audio"]),
        ("audio", {}),
        ("logprobs", True),
        ("top_logprobs", 3),
        ("stream", "yes"),
        ("stream_options", []),
        ("model", 3),
        ("messages", []),
        ("messages", "Is water wet?"),
        ("messages", [_QUESTION] * 1001),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(name: str, value: Any) -> None:
    assert [each.field for each in read_refusal(**{name: value}).violations] == [name]


def test_everything_that_cannot_be_honoured_is_named_at_once() -> None:
    error = read_refusal(n=3, tools=[{}], logprobs=True)
    assert {each.field for each in error.violations} == {"n", "tools", "logprobs"}


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("Is water wet?", "messages[0]"),
        ({"role": "tool", "content": "x"}, "messages[0].role"),
        ({"role": ["user"], "content": "x"}, "messages[0].role"),
        ({"role": "user", "content": 3}, "messages[0].content"),
        ({"role": "user"}, "messages[0].content"),
        ({"role": "user", "content": ["x"]}, "messages[0].content[0]"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content[0]"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "messages[0].content[0]"),
        ({"role": "assistant", "tool_calls": [{}]}, "messages[0].tool_calls"),
    ],
)
def test_what_cannot_be_read_of_a_message_is_refused_with_its_place(message: Any, place: str) -> None:
    assert [each.field for each in read_refusal(messages=[message, _QUESTION]).violations] == [place]


def test_who_sends_an_image_is_told_so() -> None:
    error = read_refusal(messages=[{"role": "user", "content": [{"type": "image_url"}]}])
    assert "image_url cannot be read" in error.message


def test_a_conversation_ends_with_its_user() -> None:
    error = read_refusal(messages=[_QUESTION, {"role": "assistant", "content": "Yes."}])
    assert [each.field for each in error.violations] == ["messages"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"x"', b"[" * 100_000, b'{"model": NaN}', b"\xff", b'{"model": "\\ud800"}'],
    ids=["nothing", "half", "list", "text", "deep", "nan", "bytes", "surrogate"],
)
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(ParleyError) as caught:
        read_chat_request(body)
    assert [each.field for each in caught.value.violations] == ["body"]
