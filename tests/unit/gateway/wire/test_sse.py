"""The cases of the WHATWG standard (HTML, section 9.2) for the interpretation of an event stream."""

from itertools import chain

import pytest

from parley.gateway.wire.sse import EventDecoder, EventTooLargeError

_MAX = 1000


def data_of(*chunks: bytes) -> list[str]:
    decoder = EventDecoder(_MAX)
    return [data for chunk in chunks for data in decoder.feed(chunk)]


def test_lines_of_data_are_joined_by_line_feeds() -> None:
    assert data_of(b"data: YHOO\ndata: +2\ndata: 10\n\n") == ["YHOO\n+2\n10"]


def test_the_four_blocks_of_the_standard_give_two_events_and_drop_the_last_block() -> None:
    stream = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event"
    assert data_of(stream) == ["first event", "second event"]


def test_the_third_block_of_the_standard_keeps_the_second_blank_of_its_line() -> None:
    assert data_of(b"data:  third event\n\n") == [" third event"]


def test_fields_without_a_colon_have_empty_values() -> None:
    assert data_of(b"data\n\ndata\ndata\n\ndata:") == ["", "\n"]


def test_one_blank_after_the_colon_is_no_part_of_the_value() -> None:
    assert data_of(b"data:test\n\ndata: test\n\n") == ["test", "test"]


def test_a_colon_in_the_value_stays() -> None:
    assert data_of(b"data: a:b: c\n\n") == ["a:b: c"]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_of_the_standard_ends_lines(end: bytes) -> None:
    assert data_of(b"data: 1" + end + b"data: 2" + end + end + b"data: 3" + end + end) == ["1\n2", "3"]


def test_line_ends_may_be_mixed() -> None:
    assert data_of(b"data: 1\r\ndata: 2\n\rdata: 3\r\r") == ["1\n2", "3"]


def test_a_crlf_split_over_chunks_is_one_line_end() -> None:
    assert data_of(b"data: 1\r", b"\ndata: 2\r", b"\n", b"\r", b"\n") == ["1\n2"]


def test_a_carriage_return_ends_a_line_at_once() -> None:
    assert data_of(b"data: 1\r\r") == ["1"]


@pytest.mark.parametrize("stream", [b"\xef\xbb\xbfdata: 1\n\n", b"data: 1\n\n"])
def test_a_byte_order_mark_at_the_beginning_is_dropped(stream: bytes) -> None:
    assert data_of(*(stream[place : place + 1] for place in range(len(stream)))) == ["1"]


def test_a_second_byte_order_mark_is_part_of_the_field_name() -> None:
    assert not data_of(b"\xef\xbb\xbf\xef\xbb\xbfdata: 1\n\n")


def test_comments_are_ignored_and_do_not_split_an_event() -> None:
    assert data_of(b":\n: ping\n\ndata: 1\n:data: 2\ndata: 3\n\n") == ["1\n3"]


@pytest.mark.parametrize("line", [b"Data: 2", b" data: 2", b"data : 2", b"other: 2", b"other"])
def test_unknown_fields_are_ignored(line: bytes) -> None:
    assert data_of(b"data: 1\n" + line + b"\n\n") == ["1"]


@pytest.mark.parametrize("line", [b"event: add", b"id: 7", b"id: 8\x009", b"retry: 3000", b"retry: soon"])
def test_types_ids_and_reconnection_times_change_no_data_and_are_no_events(line: bytes) -> None:
    assert data_of(line + b"\n\n" + line + b"\ndata: 1\n" + line + b"\n\ndata: 2\n\n") == ["1", "2"]


def test_an_event_that_the_stream_breaks_off_is_dropped() -> None:
    assert data_of(b"data: 1\n\ndata: 2\n", b"data: 3") == ["1"]


def test_a_character_split_over_chunks_is_read_whole() -> None:
    stream = "data: é€😀\n\n".encode()
    for cut in range(len(stream)):
        assert data_of(stream[:cut], stream[cut:]) == ["é€😀"]


def test_bytes_that_are_no_utf_8_become_replacement_characters() -> None:
    assert data_of(b"data: a\xffb\xe2\x82\n\n") == ["a\ufffdb\ufffd"]


@pytest.mark.parametrize(
    "chunk", [b"data: " + b"x" * 100, b"data: " + b"x" * 100 + b"\n", b":" + b"x" * 100 + b"\n"]
)
def test_an_event_that_never_ends_is_refused(chunk: bytes) -> None:
    decoder = EventDecoder(_MAX)
    with pytest.raises(EventTooLargeError, match="1000 characters"):
        list(chain.from_iterable(decoder.feed(chunk) for _ in range(10)))


def test_an_event_may_be_as_large_as_the_bound_and_no_larger() -> None:
    full = b"data:" + b"x" * (_MAX - 6) + b"\n"
    assert not list(EventDecoder(_MAX).feed(full))
    with pytest.raises(EventTooLargeError):
        list(EventDecoder(_MAX).feed(b"x" + full))


def test_the_bound_is_that_of_an_event_and_not_of_the_stream() -> None:
    assert data_of(*[b": ping\n\ndata: " + b"x" * 900 + b"\n\n"] * 5) == ["x" * 900] * 5


def test_a_chunk_of_nothing_but_line_ends_is_not_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    empty_lines = 0
    take_data = EventDecoder._take_data

    def count(decoder: EventDecoder) -> str | None:
        nonlocal empty_lines
        empty_lines += 1
        return take_data(decoder)

    monkeypatch.setattr(EventDecoder, "_take_data", count)
    assert data_of(b"\n" * 1_000_000 + b"data: 1" + b"\r\n" * 500_000) == ["1"]
    assert empty_lines < 10
