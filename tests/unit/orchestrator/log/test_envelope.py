"""Envelopes: what is stored of an event, and the chain that holds events together."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from google.protobuf.any_pb2 import Any
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.log.envelope import GENESIS, Envelope, create_event, open_entry, seal
from parley.orchestrator.log.events import CorruptEventError, Payload
from parley.orchestrator.log.reading import open_records
from parley.storage.ports import Record
from parley.v1.agent_pb2 import ToolCall
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.event_pb2 import Event, PastDebates, Paused, RoundStarted, StepSucceeded, Warned
from parley.v1.memory_pb2 import PastDebate
from tests.unit.orchestrator.made_logs import CREATED, foreign_entry, log, make_success

NOON = datetime(2031, 2, 3, 12, tzinfo=UTC)
HASH_BYTES = 34
PROPOSAL = Work(activity="proposal", agent_id="ada", round=1)


def seal_event(payload: Payload | None = None, sequence: int = 1, before: bytes = GENESIS) -> Envelope:
    event = create_event("a/key", payload or Warned(message="look out"), 0)
    return seal(event, tenant="t", debate="deb", sequence=sequence, epoch=1, time=NOON, before=before)


def open_log(entries: Sequence[bytes]) -> list[Envelope]:
    """Open the entries of a whole log as a reader does."""
    return open_records([Record(1, "x", tuple(entries))], 0, GENESIS)


@given(text=st.text(), ids=st.lists(st.text(max_size=9), max_size=3))
def test_what_is_sealed_is_what_is_opened(text: str, ids: list[str]) -> None:
    value = Any()
    value.Pack(PastDebates(debates=[PastDebate(debate_id=each) for each in ids]))
    recalled = StepSucceeded(work=Work(activity="recall"), digest="d", value=value)
    for payload in (Warned(message=text), recalled, Paused()):
        envelope = seal_event(payload)
        assert open_entry(envelope.entry, GENESIS) == envelope
        assert envelope.payload == payload


def test_a_payload_without_fields_keeps_its_kind() -> None:
    assert open_entry(seal_event(Paused()).entry, GENESIS).kind == "paused"


def test_what_is_stored_is_the_event_as_anyone_can_read_and_check_it() -> None:
    """With the contract's message and SHA-256 alone."""
    before = GENESIS
    for envelope in log(CREATED, Warned(message="one"), RoundStarted(number=1, total=2)):
        body, tail = envelope.entry[:-HASH_BYTES], envelope.entry[-HASH_BYTES:]
        hashed = hashlib.sha256(before + body).digest()
        assert tail == b"\x7a\x20" + hashed
        event = Event.FromString(envelope.entry)
        assert event == envelope.message
        assert event.hash == envelope.hash == hashed
        before = hashed


def test_an_event_whose_first_record_was_not_written_can_be_recorded_again() -> None:
    def seal_again() -> bytes:
        return seal(event, tenant="t", debate="deb", sequence=1, epoch=1, time=NOON, before=GENESIS).entry

    event = create_event("a/key", Warned(message="look out"), 0)
    assert seal_again() == seal_again()


def test_an_event_that_stands_in_two_logs_of_tests_has_a_place_in_each() -> None:
    event = create_event("a/key", Warned(message="look out"))
    first, second = log(event), log(CREATED, event)
    assert (first[0].sequence, second[1].sequence) == (1, 2)


def test_what_was_looked_up_is_kept_with_the_reply() -> None:
    calls = (
        ToolCall(name="file_read", arguments='{"path":"a.md"}', characters=12),
        ToolCall(name="nonsense", failed=True),
    )
    reply = Reply(text="Use A.", tool_calls=calls)
    payload = StepSucceeded(work=PROPOSAL, digest="d", reply=reply)
    assert open_entry(seal_event(payload).entry, GENESIS).payload == payload


def test_an_entry_is_the_same_bytes_every_time() -> None:
    assert seal_event().entry == seal_event().entry
    assert open_entry(seal_event().entry, GENESIS).entry == seal_event().entry


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tenant", "u"), ("debate_id", "bed"), ("sequence", 2), ("epoch", 2), ("key", "b"), ("attempt", 1),
        ("time", {"seconds": 1}), ("ignorable", False), ("warned", {"message": "else"}), ("closed", {}), ("hash", bytes(32)),
    ],
)  # fmt: skip
def test_a_change_to_any_field_is_found(field: str, value: object) -> None:
    event = Event.FromString(seal_event().entry)
    event.MergeFrom(Event(**{field: value}))  # type: ignore[arg-type]
    if field == "ignorable":
        event.ignorable = False
    hashed = event.hash
    event.ClearField("hash")
    with pytest.raises(CorruptEventError):
        open_entry(event.SerializeToString() + b"\x7a\x20" + hashed, GENESIS)


LOG = [
    each.entry
    for each in log(
        CREATED, Warned(message="one"), make_success(PROPOSAL, "Use A."), RoundStarted(number=1, total=2)
    )
]


@given(place=st.integers(0, len(LOG) - 1), data=st.data(), flipped=st.integers(1, 255))
def test_any_byte_that_was_changed_in_any_event_is_found(
    place: int, data: st.DataObject, flipped: int
) -> None:
    entry = bytearray(LOG[place])
    at = data.draw(st.integers(0, len(entry) - 1))
    entry[at] ^= flipped
    with pytest.raises(CorruptEventError):
        open_log([*LOG[:place], bytes(entry), *LOG[place + 1 :]])


@pytest.mark.parametrize("at", range(len(LOG[-1])))
def test_any_bit_that_was_changed_in_the_last_event_is_found(at: int) -> None:
    for bit in range(8):
        entry = bytearray(LOG[-1])
        entry[at] ^= 1 << bit
        with pytest.raises(CorruptEventError):
            open_log([*LOG[:-1], bytes(entry)])


@given(st.integers(0, len(LOG) - 1), st.data())
def test_an_event_that_was_cut_off_or_lengthened_is_found(place: int, data: st.DataObject) -> None:
    entry = LOG[place]
    cut = entry[: data.draw(st.integers(0, len(entry) - 1))]
    longer = entry + data.draw(st.binary(min_size=1, max_size=40))
    for changed in (cut, longer):
        with pytest.raises(CorruptEventError):
            open_log([*LOG[:place], changed, *LOG[place + 1 :]])


def test_an_event_that_is_missing_or_stands_elsewhere_is_found() -> None:
    for entries in (LOG[1:], [*LOG[:1], *LOG[2:]], [LOG[0], LOG[2], LOG[1], LOG[3]], [*LOG, LOG[-1]]):
        with pytest.raises(CorruptEventError):
            open_log(entries)
    assert len(open_log(LOG)) == len(LOG)


def test_an_event_that_followed_another_one_is_found() -> None:
    first = seal_event()
    second = seal_event(Warned(message="again"), 2, first.hash).entry
    assert open_entry(second, first.hash).sequence == 2
    with pytest.raises(CorruptEventError, match="does not follow"):
        open_entry(second, GENESIS)


@pytest.mark.parametrize("ignorable", [True, False])
def test_a_kind_that_is_not_known_is_opened_without_a_payload_and_still_chained(ignorable: bool) -> None:
    first = seal_event()
    entry = foreign_entry(first.hash, 2, ignorable=ignorable)
    foreign = open_entry(entry, first.hash)
    assert (foreign.kind, foreign.payload, foreign.sequence) == ("", None, 2)
    assert foreign.message.ignorable == ignorable
    after = seal_event(Warned(message="after"), 3, foreign.hash)
    assert open_entry(after.entry, foreign.hash).payload == Warned(message="after")
    with pytest.raises(CorruptEventError):
        open_entry(entry.replace(b"\x08\x07" + b"\x7a\x20", b"\x08\x06" + b"\x7a\x20"), first.hash)


def test_an_event_can_be_opened_without_the_one_before_it() -> None:
    envelope = seal_event(Warned(message="again"), 2, seal_event().hash)
    assert open_entry(envelope.entry, None) == envelope


@pytest.mark.parametrize(
    "entry", [b"", b"[]", b"{}", b"\x00", b"\x0a\x01t", b"\x7a\x20" + bytes(32), b"\xff" * 40]
)
def test_a_damaged_entry_says_so(entry: bytes) -> None:
    with pytest.raises(CorruptEventError):
        open_entry(entry, GENESIS)


def test_an_entry_with_a_time_that_is_none_says_so() -> None:
    body = Event(tenant="t", sequence=1, time=Timestamp(seconds=10**15)).SerializeToString()
    with pytest.raises(CorruptEventError):
        open_entry(body + b"\x7a\x20" + bytes(32), None)


@given(st.integers(0, len(LOG[-1]) - 1), st.integers(1, 255))
def test_whatever_was_changed_an_entry_is_opened_or_said_to_be_damaged(at: int, flipped: int) -> None:
    """Where its place in the chain is not checked."""
    entry = bytearray(LOG[-1])
    entry[at] ^= flipped
    with suppress(CorruptEventError):
        assert open_entry(bytes(entry), None).entry == entry
