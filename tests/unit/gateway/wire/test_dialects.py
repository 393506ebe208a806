"""How tools travel in the two APIs, and what endpoints make of that."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from parley.gateway.failures import SERVER_ERROR, Failure
from parley.gateway.prompt.tools import MAX_ARGUMENTS, TOOLS, Reasoning, ToolRequest, ToolTurn
from parley.gateway.wire.api import Api, ModelRequest
from parley.gateway.wire.json_fields import count_written_tokens
from parley.gateway.wire.request_body import body, reader, request_json
from tests.support.prompt_parts import assistant, user

READ = {"name": "file_read", "arguments": '{"path": "a.md"}'}


def chat_delta(*fragments: Mapping[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(fragments)}, "finish_reason": None}]}


def hear(api: Api, events: Iterable[Mapping[str, Any]]) -> list[ToolRequest]:
    reading = reader(api)
    for event in events:
        assert reading.read_event(event) == ""
    reading.end()
    assert reading.reply.tool_begun == bool(reading.reply.tool_requests)
    return reading.reply.tool_requests


def test_fragments_of_a_chat_stream_become_calls_by_index() -> None:
    events = [
        chat_delta(
            {"index": 0, "id": "a", "type": "function", "function": {"name": "file_read", "arguments": ""}}
        ),
        chat_delta({"index": 0, "function": {"arguments": '{"path":'}}),
        chat_delta({"index": 1, "id": "b", "function": {"name": "list_files", "arguments": "{}"}}),
        chat_delta({"index": 0, "function": {"arguments": ' "a.md"}'}}),
    ]
    assert hear(Api.CHAT, events) == [
        ToolRequest("a", "file_read", '{"path": "a.md"}'),
        ToolRequest("b", "list_files", "{}"),
    ]


@pytest.mark.parametrize("index", [{}, {"index": 0}])
def test_whole_calls_of_a_chat_stream_stay_apart_under_one_index_or_none(index: dict[str, int]) -> None:
    events = [chat_delta({**index, "id": each, "function": READ}) for each in ("a", "b")]
    assert [each.id for each in hear(Api.CHAT, events)] == ["a", "b"]


def test_calls_without_ids_or_index_and_with_objects_for_arguments_are_understood() -> None:
    reading = reader(Api.CHAT)
    calls = [{"function": {"name": "file_read", "arguments": {"path": each}}} for each in ("a", "b")]
    reading.read_whole(
        {"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]}
    )
    reading.end()
    assert [json.loads(each.arguments)["path"] for each in reading.reply.tool_requests] == ["a", "b"]


def test_a_call_of_the_responses_api_is_heard_once_however_often_it_is_told() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", **READ}
    done = {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
    told = {"type": "response.output_item.done", "item": item}
    expected = [ToolRequest("call_1", "file_read", '{"path": "a.md"}')]
    assert hear(Api.RESPONSES, [told, done]) == hear(Api.RESPONSES, [done]) == expected


def test_endless_calls_and_arguments_are_bounded_and_clean() -> None:
    many = [chat_delta({"index": number, "function": READ}) for number in range(500)]
    assert len(hear(Api.CHAT, many)) == 128
    long = [chat_delta({"index": 0, "function": {"arguments": "x\x00\ud800" * 1000}}) for _ in range(100)]
    (call,) = hear(Api.CHAT, long)
    assert 1000 < len(call.arguments) <= MAX_ARGUMENTS + 1
    assert not set(call.arguments) & {"\x00", "\ud800"}


@pytest.mark.parametrize("api", list(Api))
def test_a_turn_goes_back_as_the_api_wants_it_and_readable_by_all(api: Api) -> None:
    requests = (ToolRequest("1", "file_read", '{"path": "a.md"}'), ToolRequest("2", "what? ever", "{broken"))
    request = ModelRequest(
        "m",
        (user("Q"), ToolTurn("", requests, ("text of a", "no"))),
        tools=(TOOLS["file_read"],),
        may_use_tools=False,
    )
    sent = body(api, request, frozenset())
    assert sent["tool_choice"] == "none"
    said = {"role": "user", "content": "Q"}
    if api is Api.RESPONSES:
        assert sent["tools"][0]["name"] == "file_read"
        assert sent["input"] == [
            said,
            {"type": "function_call", "call_id": "1", "name": "file_read", "arguments": '{"path": "a.md"}'},
            {"type": "function_call", "call_id": "2", "name": "what__ever", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "text of a"},
            {"type": "function_call_output", "call_id": "2", "output": "no"},
        ]
    else:
        assert sent["tools"][0]["function"]["name"] == "file_read"
        assert [each["role"] for each in sent["messages"]] == ["user", "assistant", "tool", "tool"]
        assert sent["messages"][2] == {"role": "tool", "tool_call_id": "1", "content": "text of a"}
        assert [each["id"] for each in sent["messages"][1]["tool_calls"]] == ["1", "2"]


def test_what_the_model_said_goes_back_in_the_form_that_every_responses_api_takes() -> None:
    messages = (user("Why?"), assistant("Because."), ToolTurn("Let me see.", (), ()))
    given = body(Api.RESPONSES, ModelRequest("m", messages), frozenset())["input"]
    assert given[0] == {"role": "user", "content": "Why?"}
    assert [(each["type"], each["role"], each["content"]) for each in given[1:]] == [
        ("message", "assistant", [{"type": "output_text", "text": said}])
        for said in ("Because.", "Let me see.")
    ]


def chat_events(*deltas: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_of_a_chat_stream_is_counted_and_kept_apart_from_the_text(name: str) -> None:
    reading = reader(Api.CHAT)
    texts = [
        reading.read_event(event)
        for event in chat_events({name: "Is it? "}, {name: "It is.", "content": None}, {"content": "Yes."})
    ]
    reading.end()
    assert texts == ["", "", "Yes."]
    assert reading.reply.reasoning_characters == 13
    assert reading.reply.reasoning == Reasoning(fields={"reasoning_content": "Is it? It is."})


def test_openrouters_details_of_reasoning_go_back_as_they_came_put_together() -> None:
    reading = reader(Api.CHAT)
    for piece in (
        {"type": "reasoning.text", "index": 0, "text": "Is it? ", "signature": None},
        {"type": "reasoning.text", "index": 0, "text": "It is.", "signature": "abc"},
        {"type": "reasoning.encrypted", "index": 1, "data": "xyz"},
    ):
        for event in chat_events({"reasoning": piece.get("text"), "reasoning_details": [piece]}):
            assert reading.read_event(event) == ""
    reading.end()
    details = [
        {"type": "reasoning.text", "index": 0, "text": "Is it? It is.", "signature": "abc"},
        {"type": "reasoning.encrypted", "index": 1, "data": "xyz"},
    ]
    assert reading.reply.reasoning == Reasoning(fields={"reasoning_details": details})
    turn = ToolTurn("", (ToolRequest("1", "file_read", "{}"),), ("text",), reading.reply.reasoning)
    said = body(Api.CHAT, ModelRequest("m", (turn,)), frozenset())["messages"][0]
    assert said["reasoning_details"] == details


def nest(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def requests_after(thought: Any) -> Iterator[bytes]:
    """The next request in each API, after a model that thought this has asked for a tool."""
    chat, items = reader(Api.CHAT), reader(Api.RESPONSES)
    for event in chat_events({"reasoning_details": [{"index": 0, "data": thought}]}):
        chat.read_event(event)
    items.read_whole({"output": [{"type": "reasoning", "encrypted_content": "xyz", "summary": [thought]}]})
    for reading, api in ((chat, Api.CHAT), (items, Api.RESPONSES)):
        reading.end()
        turn = ToolTurn("", (ToolRequest("1", "file_read", "{}"),), ("text",), reading.reply.reasoning)
        yield b"".join(request_json(body(api, ModelRequest("m", (turn,)), frozenset())))


@pytest.mark.parametrize(
    ("given", "sent"),
    [(math.nan, None), (-math.inf, None), ("\ud83d\ude00", "😀"), ("half \ud83d", "half \ufffd")],
)
def test_odd_details_of_reasoning_go_back_in_json_that_anyone_reads(given: Any, sent: Any) -> None:
    for written in requests_after(given):
        text = written.decode()
        assert not {"NaN", "Infinity"} & set(re.findall("[A-Za-z]+", text))
        assert json.dumps(sent, ensure_ascii=False) in text


@pytest.mark.parametrize("levels", range(240, 260))
def test_however_deeply_reasoning_is_nested_the_next_request_can_be_written(levels: int) -> None:
    assert all(requests_after(nest(levels)))


def test_details_of_reasoning_that_are_nested_too_deeply_do_not_go_back() -> None:
    reading = reader(Api.CHAT)
    for event in chat_events({"reasoning_details": [{"index": 0, "data": nest(300)}]}):
        reading.read_event(event)
    reading.end()
    assert reading.reply.reasoning == Reasoning()


def test_reasoning_among_the_parts_of_a_chat_text_is_left_out() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Is it?"}]},
        {"type": "text", "text": "Yes."},
    ]
    reading = reader(Api.CHAT)
    said = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    assert reading.read_whole(said) == "Yes."
    assert reading.reply.reasoning_characters == 6


def test_reasoning_items_that_could_only_be_found_by_their_id_do_not_go_back() -> None:
    reading = reader(Api.RESPONSES)
    sealed: dict[str, Any] = {
        "type": "reasoning",
        "id": "rs_2",
        "summary": [],
        "encrypted_content": "x",
        "status": None,
    }
    for item in ({"type": "reasoning", "id": "rs_1", "summary": []}, sealed):
        reading.read_event({"type": "response.output_item.added", "item": item})
        assert reading.reply.thinks
        reading.read_event({"type": "response.output_item.done", "item": item})
        assert not reading.reply.thinks
    reading.read_event(
        {"type": "response.completed", "response": {"status": "completed", "output": [sealed]}}
    )
    reading.end()
    kept = {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "x"}
    assert reading.reply.reasoning.items == (kept,)


def test_endless_reasoning_is_counted_and_not_kept() -> None:
    reading = reader(Api.CHAT)
    for event in chat_events(*[{"reasoning_content": "x" * 1000}] * 1000):
        reading.read_event(event)
    reading.end()
    assert reading.reply.reasoning_characters == 1_000_000
    assert reading.reply.reasoning == Reasoning()


@pytest.mark.parametrize(
    ("total", "tokens"), [(130, 30), (150, 50), (None, 30)], ids=["within", "beside", "not said"]
)
def test_tokens_of_reasoning_are_counted_once(total: int | None, tokens: int) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "completion_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": total,
    }
    assert count_written_tokens(usage, "prompt_tokens", "completion_tokens") == tokens


def test_a_finish_reason_of_error_is_an_error() -> None:
    event = {"choices": [{"delta": {"content": "half"}, "finish_reason": "error"}]}
    with pytest.raises(Failure, match="broke the answer off") as caught:
        reader(Api.CHAT).read_event(event)
    assert caught.value.kind is SERVER_ERROR


@pytest.mark.parametrize(
    "content",
    [
        "Yes, no.",
        ["Yes", ", no."],
        [{"type": "text", "text": "Yes"}, {"type": "output_text", "text": ", no."}],
        [{"text": "Yes, "}, {"type": "image", "text": "never"}, "no."],
        {"type": "text", "text": "Yes, no."},
    ],
)
def test_content_is_read_whole_or_as_parts(content: object) -> None:
    choice = {"delta": {"content": content}, "message": {"content": content}, "finish_reason": "stop"}
    assert reader(Api.CHAT).read_event({"choices": [choice]}) == "Yes, no."
    assert reader(Api.CHAT).read_whole({"choices": [choice]}) == "Yes, no."
    message = {"type": "message", "content": content}
    assert reader(Api.RESPONSES).read_whole({"status": "completed", "output": [message]}) == "Yes, no."


@pytest.mark.parametrize(
    ("given", "read"),
    [
        *[(7, 7), (7.0, 7), (6.6, 7), (0, 0), (-1, 0), (True, 0), ("7", 0), (1e300, 0), (10**9, 0)],
        *[(float("nan"), 0), (float("inf"), 0), (None, 0), ([7], 0)],
    ],
)
def test_usage_is_a_number_that_can_be_true(given: object, read: int) -> None:
    reading = reader(Api.CHAT)
    reading.read_event({"usage": {"prompt_tokens": given, "completion_tokens": given}})
    assert (reading.reply.input_tokens, reading.reply.output_tokens) == (read, read)


@pytest.mark.parametrize("api", list(Api))
def test_a_models_name_is_one_bounded_printable_line(api: Api) -> None:
    reading = reader(api)
    reading.read_whole(
        {"model": "m\x1b[31m\n\u202ex\u00ad" + "y" * 10_000, "status": "completed", "choices": []}
    )
    assert reading.reply.model.startswith("m[31m xyyy")
    assert len(reading.reply.model) <= 200
    assert reading.reply.model.isprintable()
