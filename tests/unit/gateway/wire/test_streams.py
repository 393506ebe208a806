"""The objects of a stream's events, and how long an answer may be silent."""

import asyncio
import json
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.failures import Failure
from parley.gateway.wire.api import Api, ModelReply
from parley.gateway.wire.request_body import reader
from parley.gateway.wire.streams import AnswerMonitor, EventReader, Patience


async def test_an_answer_has_one_timer_however_many_chunks_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[float] = []
    loop = asyncio.get_running_loop()
    call_at = loop.call_at

    def count(when: float, *given: Any, **named: Any) -> asyncio.TimerHandle:
        timers.append(when)
        return call_at(when, *given, **named)

    monkeypatch.setattr(loop, "call_at", count)
    monitor = AnswerMonitor(None, Patience(first=3_600, silence=600))

    async def read() -> None:
        for _ in range(100):
            monitor.count(1)
            monitor.follow(ModelReply())

    await monitor.run(read())
    assert len(timers) == 1


@pytest.mark.parametrize("thinks", [False, True])
async def test_an_answer_may_be_silent_as_long_as_its_last_chunk_says(thinks: bool) -> None:
    monitor = AnswerMonitor(None, Patience(first=3_600, silence=0.05))
    went_on = asyncio.Event()

    async def read() -> None:
        monitor.follow(ModelReply(thinks=not thinks))
        monitor.follow(ModelReply(thinks=thinks))
        try:
            await asyncio.wait_for(went_on.wait(), 0.2 if thinks else 30)
        except TimeoutError:
            return

    if thinks:
        await monitor.run(read())
    else:
        with pytest.raises(Failure, match="silent"):
            await monitor.run(read())


@pytest.mark.parametrize("api", Api)
async def test_an_endpoint_that_did_not_say_that_the_model_thinks_may_not_be_silent(api: Api) -> None:
    monitor = AnswerMonitor(None, Patience(first=3_600, silence=0.05))

    async def read() -> None:
        monitor.follow(reader(api).reply)
        await asyncio.wait_for(asyncio.Event().wait(), 30)

    with pytest.raises(Failure, match="silent"):
        await monitor.run(read())


@given(
    st.lists(st.text(max_size=20), max_size=8),
    st.lists(st.integers(1, 30), min_size=1),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from(["", "no event", "data: {broken", 'data: {"t": 1}']),
    st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_events_are_the_same_however_the_stream_is_cut(
    texts: list[str], cuts: list[int], end: str, mark: str, after: str, plain: list[bool]
) -> None:
    said = [json.dumps(text, ensure_ascii=False) for text in texts]
    stream = mark + "".join(
        f'data: {{"t": {text}}}{end}{end}'
        if is_plain
        else f': ping{end}{end}event: x{end}data: {{{end}data: "t": {text}}}{end}{end}'
        for text, is_plain in zip(said, plain, strict=False)
    )
    data = (stream + f"data: [DONE]{end}{end}{after}{end}{end}").encode()
    reader, seen, place, turn = EventReader(), [], 0, 0
    while place < len(data):
        size = cuts[turn % len(cuts)]
        seen += [event["t"] for event in reader.feed(data[place : place + size]) if isinstance(event, dict)]
        place, turn = place + size, turn + 1
    seen += [event["t"] for event in reader.end() if isinstance(event, dict)]
    assert seen == texts
    assert reader.done


def test_an_event_is_given_when_its_empty_line_is_there_though_a_carriage_return_ends_it() -> None:
    reader = EventReader()
    assert list(reader.feed(b'data: {"t": 1}\r\r')) == [{"t": 1}]
    assert not list(reader.feed(b"data: [DONE]\r\r"))
    assert reader.done


def test_events_without_empty_lines_between_them_are_read_too() -> None:
    reader = EventReader()
    assert list(reader.feed(b'data: {"t": 1}\ndata: {"t": 2}\ndata: [DONE]\n\n')) == [{"t": 1}, {"t": 2}]
    assert reader.done


def test_events_that_come_together_are_read_as_if_each_came_alone() -> None:
    for other in ("null", "7", "[1]", '"text"'):
        chunk = f'data: {other}\n\ndata: {{"t": 1}}\n\ndata: {other}\n\n'.encode()
        assert list(EventReader().feed(chunk)) == [{"t": 1}]


def test_nothing_is_read_after_the_end_that_comes_with_events() -> None:
    reader = EventReader()
    events = list(reader.feed(b'data: {"t": 1}\n\ndata: {"t": 2}\n\ndata: [DONE]\n\ndata: {"t": 3}\n\n'))
    assert events == [{"t": 1}, {"t": 2}]
    assert reader.done


def test_an_event_that_is_not_json_is_a_failure_among_others_too() -> None:
    for broken in ('{"t": ', '{"t": 2}, {"t": 3}', '{"t": 2'):
        reader = EventReader()
        read = reader.feed(f'data: {{"t": 1}}\n\ndata: {broken}\n\ndata: {{"t": 4}}\n\n'.encode())
        assert next(read) == {"t": 1}
        with pytest.raises(Failure, match="not JSON"):
            next(read)


def test_an_event_that_never_ends_is_refused() -> None:
    reader = EventReader()
    line = b"data: " + b"x" * 1024 * 1024 + b"\n"
    with pytest.raises(Failure, match="too large"):
        list(chain.from_iterable(reader.feed(line) for _ in range(10)))


def test_an_event_at_the_very_end_needs_no_empty_line() -> None:
    reader = EventReader()
    assert not list(reader.feed(b'data: {"t": 1}'))
    assert list(reader.end()) == [{"t": 1}]


def test_what_is_not_json_is_a_failure() -> None:
    with pytest.raises(Failure, match="not JSON"):
        list(EventReader().feed(b'data: {"t": \n\n'))
