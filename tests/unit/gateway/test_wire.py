"""How tools travel in the two APIs, and what endpoints make of that."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from parley.gateway.fitting import Message
from parley.gateway.tools import MAX_ARGUMENTS, TOOLS, ToolRequest, ToolTurn
from parley.gateway.wire import Api, ModelRequest, body, reader

READ = {"name": "file_read", "arguments": '{"path": "a.md"}'}


def chat_delta(*fragments: Mapping[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(fragments)}, "finish_reason": None}]}


def heard(api: Api, events: Iterable[Mapping[str, Any]]) -> list[ToolRequest]:
    reading = reader(api)
    for event in events:
        assert reading.event(event) == ""
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
    assert heard(Api.CHAT, events) == [
        ToolRequest("a", "file_read", '{"path": "a.md"}'),
        ToolRequest("b", "list_files", "{}"),
    ]


@pytest.mark.parametrize("index", [{}, {"index": 0}])
def test_whole_calls_of_a_chat_stream_stay_apart_under_one_index_or_none(index: dict[str, int]) -> None:
    events = [chat_delta({**index, "id": each, "function": READ}) for each in ("a", "b")]
    assert [each.id for each in heard(Api.CHAT, events)] == ["a", "b"]


def test_calls_without_ids_or_index_and_with_objects_for_arguments_are_understood() -> None:
    reading = reader(Api.CHAT)
    calls = [{"function": {"name": "file_read", "arguments": {"path": each}}} for each in ("a", "b")]
    reading.whole(
        {"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]}
    )
    reading.end()
    assert [json.loads(each.arguments)["path"] for each in reading.reply.tool_requests] == ["a", "b"]


def test_a_call_of_the_responses_api_is_heard_once_however_often_it_is_told() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", **READ}
    done = {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
    told = {"type": "response.output_item.done", "item": item}
    expected = [ToolRequest("call_1", "file_read", '{"path": "a.md"}')]
    assert heard(Api.RESPONSES, [told, done]) == heard(Api.RESPONSES, [done]) == expected


def test_endless_calls_and_arguments_are_bounded_and_clean() -> None:
    many = [chat_delta({"index": number, "function": READ}) for number in range(500)]
    assert len(heard(Api.CHAT, many)) == 128
    long = [chat_delta({"index": 0, "function": {"arguments": "x\x00\ud800" * 1000}}) for _ in range(100)]
    (call,) = heard(Api.CHAT, long)
    assert 1000 < len(call.arguments) <= MAX_ARGUMENTS + 1
    assert not set(call.arguments) & {"\x00", "\ud800"}


@pytest.mark.parametrize("api", list(Api))
def test_a_turn_goes_back_as_the_api_wants_it_and_readable_by_all(api: Api) -> None:
    requests = (ToolRequest("1", "file_read", '{"path": "a.md"}'), ToolRequest("2", "what? ever", "{broken"))
    request = ModelRequest(
        "m",
        (Message("user", "Q"), ToolTurn("", requests, ("text of a", "no"))),
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
