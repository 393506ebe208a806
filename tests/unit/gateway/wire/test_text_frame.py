"""Events of an answer that differ in their text alone are read to the same text as if each was parsed."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.gateway.failures import Failure
from parley.gateway.wire import streams
from parley.gateway.wire.api import Api, Reader
from parley.gateway.wire.json_fields import read_json
from parley.gateway.wire.request_body import reader
from parley.gateway.wire.streams import AnswerMonitor, IncomingText, Patience, read_events
from parley.gateway.wire.text_frame import TextFrame, find_frame

_TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from('"\\\n:, '), min_size=1, max_size=6)


def event(text: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text, **more}, "finish_reason": None}
    return {"id": "chat-1", "model": "m", "choices": [choice]}


async def hear(*events: dict[str, Any] | str, ascii_only: bool = False) -> tuple[str, Reader]:
    """The text of a stream that comes in two chunks, and what read it."""
    data = [each if isinstance(each, str) else json.dumps(each, ensure_ascii=ascii_only) for each in events]
    stream = "".join(f"data: {each}\n\n" for each in [*data, "[DONE]"]).encode()

    async def chunks() -> AsyncIterator[bytes]:
        yield stream[: len(stream) // 2]
        yield stream[len(stream) // 2 :]

    monitor, reading = AnswerMonitor(None, Patience()), reader(Api.CHAT)
    incoming = IncomingText(monitor)
    await read_events(chunks(), reading, incoming, monitor)
    reading.end()
    return incoming.end(), reading


@given(st.lists(_TEXTS, max_size=8), st.booleans())
@example(["finish_reason", ":", "a:", "m", '"', "\\", "content"], False)
async def test_all_texts_of_a_stream_are_read(texts: list[str], ascii_only: bool) -> None:
    whole, _ = await hear(event("The answer: "), *map(event, texts), ascii_only=ascii_only)
    alone, _ = await hear(event("The answer: " + "".join(texts)))
    assert whole == alone


async def test_a_character_that_is_split_over_two_events_is_read() -> None:
    assert (await hear(event("one\ud83d"), event("\ude00 two"), ascii_only=True))[0] == "one😀 two"


async def test_nearly_no_event_of_an_answer_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def note(text: str) -> Any:
        parsed.append(text)
        return read_json(text)

    monkeypatch.setattr(streams, read_json.__name__, note)
    texts = ['{"quoted":\n', *(f"word {number}, " for number in range(40)), "é", '"}']
    assert (await hear(*map(event, texts)))[0] == "".join(texts)
    assert len(parsed) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "list_files", "arguments": "{}"}}]},
        {"reasoning_content": "Hm."},
    ],
)
async def test_an_event_that_says_more_is_read_whole_among_others(odd: dict[str, Any]) -> None:
    text, reading = await hear(event("one "), event("two "), event("three", **odd), event(" four"))
    assert text == "one two three four"
    assert reading.reply.tool_requests or reading.reply.reasoning.fields


async def test_what_events_say_besides_their_text_is_read_of_each() -> None:
    text, reading = await hear(*(event(each, reasoning_content="Hm.") for each in ("one ", "two ", "three")))
    assert text == "one two three"
    assert reading.reply.reasoning.fields == {"reasoning_content": "Hm.Hm.Hm."}


async def test_the_end_of_an_answer_is_read_whole_with_the_text_that_comes_with_it() -> None:
    last = event("three") | {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    last["choices"][0]["finish_reason"] = "length"
    text, reading = await hear(event("one "), event("two "), last)
    assert text == "one two three"
    assert reading.reply.truncated
    assert reading.reply.input_tokens == 7


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": [{"delta": {"content": "a "}}, {"delta": {"content": "b "}}]},
        {"choices": [{"delta": {"content": "a "}, "finish_reason": "stop"}]},
        {"choices": [{"delta": {"content": "a ", "reasoning": "b "}}]},
        {"choices": [{"delta": {"content": "a "}}], "usage": {"prompt_tokens": 1}},
        {"choices": [{"delta": {}}]},
        {"choices": []},
    ],
)
def test_an_event_that_says_more_than_text_is_no_example_for_others(odd: dict[str, Any]) -> None:
    assert not reader(Api.CHAT).says_text_alone(odd)


def test_a_text_is_looked_for_where_it_can_stand_alone() -> None:
    assert find_frame('{"a":":","b":1}', ":") is None, "a colon stands between a name and its value too"
    assert find_frame('{"a":"m","b":"m"}', "m") is None, "it is there twice"
    assert find_frame('{"a":"\\u00e9"}', "é") is None, "it is written in another way"
    assert find_frame('{"a":"m","b":1}', "m") == TextFrame('{"a":"', '","b":1}')


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ('{"a":"word","b":1}', "word"),
        ('{"a":"","b":1}', ""),
        ('{"a":"\\u00e9\\n","b":1}', "é\n"),
        ('{"a":"x","a":"y","b":1}', None),
        ('{"a":"x\\","b":1}', None),
        ('{"a":"\x01","b":1}', None),
        ('{"a":","b":1}', None),
        ('{"a":"x"}', None),
        ('{"c":"x","b":1}', None),
    ],
)
def test_an_event_has_a_frame_if_one_text_stands_in_it(data: str, text: str | None) -> None:
    framed = '{"a":"word","b":1}'
    read = TextFrame('{"a":"', '","b":1}').read([framed, data, framed])
    assert read == (["word"] if text is None else ["word", text, "word"])


async def test_what_is_not_json_is_a_failure_among_events_that_are_alike() -> None:
    with pytest.raises(Failure, match="not JSON"):
        await hear('{"choices":[{"delta":{"content":"a "}}]}', '{"choices":[{"delta":{"content":"}}]}')


async def test_a_text_among_several_objects_is_not_looked_for_in_the_event_before() -> None:
    def asks(tool: str) -> dict[str, Any]:
        return event("", tool_calls=[{"index": 0, "id": "a", "function": {"name": tool, "arguments": "{}"}}])

    several = f"{json.dumps(event('s'))}\ndata: {json.dumps(event('word'))}"
    text, reading = await hear(asks("word"), several, asks("tool"))
    assert text == "sword"
    assert [each.name for each in reading.reply.tool_requests] == ["word"]


async def test_only_the_first_events_of_an_answer_are_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Sequence[str]] = []

    def note(*given: str) -> None:
        tried.append(given)

    monkeypatch.setattr(streams, find_frame.__name__, note)
    await hear(*(event(f"word {number} ") for number in range(20)))
    assert len(tried) < 10
