import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.failures import Failure
from parley.gateway.wire.sse import EventReader


@given(
    st.lists(st.text(max_size=20), max_size=8),
    st.lists(st.integers(1, 30), min_size=1),
    st.sampled_from(["\n", "\r\n"]),
)
def test_events_are_the_same_however_the_stream_is_cut(texts: list[str], cuts: list[int], end: str) -> None:
    stream = "".join(
        f": ping{end}{end}event: x{end}data: {json.dumps({'t': text})}{end}{end}" for text in texts
    )
    data = (stream + f"data: [DONE]{end}{end}").encode()
    reader, seen, place, turn = EventReader(), [], 0, 0
    while place < len(data):
        size = cuts[turn % len(cuts)]
        seen += [event["t"] for event in reader.feed(data[place : place + size])]
        place, turn = place + size, turn + 1
    seen += [event["t"] for event in reader.end()]
    assert seen == texts


def test_an_event_at_the_very_end_needs_no_empty_line() -> None:
    reader = EventReader()
    assert not list(reader.feed(b'data: {"t": 1}'))
    assert list(reader.end()) == [{"t": 1}]


def test_what_is_not_json_is_a_failure() -> None:
    with pytest.raises(Failure, match="not JSON"):
        list(EventReader().feed(b'data: {"t": \n\n'))
