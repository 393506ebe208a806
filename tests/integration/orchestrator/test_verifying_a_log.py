"""A log can be verified with nothing but the contract and SHA-256, as docs/architecture/log.md says."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from parley.v1 import event_pb2, orchestrator_pb2
from tests.support.orchestration import Orchestrator, events_of, orchestrating
from tests.support.scripted_gateway import ScriptedGateway


def verify_entries(entries: Iterable[bytes]) -> list[event_pb2.Event]:
    """What the page shows: nothing here but hashlib and the generated messages."""
    before = bytes(32)
    events: list[event_pb2.Event] = []
    for entry in entries:
        body, field, digest = entry[:-34], entry[-34:-32], entry[-32:]
        assert field == b"\x7a\x20", "the hash stands last"
        assert hashlib.sha256(before + body).digest() == digest, "it follows from the event before"
        event = event_pb2.Event.FromString(entry)
        assert event.hash == digest
        assert event.sequence == len(events) + 1
        events.append(event)
        before = digest
    return events


async def read_log(orchestrator: Orchestrator, debate: str, after: int = 0) -> list[bytes]:
    request = orchestrator_pb2.ReadLogRequest(debate_id=debate, after_sequence=after)
    return [entry async for part in orchestrator.stub.ReadLog(request) for entry in part.events]


async def test_the_stored_bytes_of_a_debate_are_handed_out_and_can_be_verified(tmp_path: Path) -> None:
    async with ScriptedGateway().served() as gateway, orchestrating(tmp_path, gateway) as orchestrator:
        debate = await orchestrator.create(rounds=2)
        watched = events_of(await orchestrator.watch(debate))
        entries = await read_log(orchestrator, debate)
        rest = await read_log(orchestrator, debate, after=7)
    events = verify_entries(entries)
    assert events == watched
    assert rest == entries[7:]
    assert events[0].WhichOneof("payload") == "debate_created"
    assert events[-1].WhichOneof("payload") == "closed"


@pytest.mark.parametrize("place", [0, 5, -1])
async def test_a_byte_that_was_changed_is_noticed(place: int, tmp_path: Path) -> None:
    async with ScriptedGateway().served() as gateway, orchestrating(tmp_path, gateway) as orchestrator:
        debate = await orchestrator.create()
        await orchestrator.watch(debate)
        entries = await read_log(orchestrator, debate)
    entry = bytearray(entries[place])
    entry[10] ^= 1
    entries[place] = bytes(entry)
    with pytest.raises(AssertionError):
        verify_entries(entries)


def varint(read: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = read[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return value, at


def fields_of(message: bytes) -> list[tuple[int, int | bytes]]:
    """Protobuf's wire format, as far as an event uses it: numbers and bytes."""
    read, at = memoryview(message), 0
    found: list[tuple[int, int | bytes]] = []
    while at < len(read):
        tag, at = varint(read, at)
        value, at = varint(read, at)
        if tag & 7 == 0:
            found.append((tag >> 3, value))
        else:
            assert tag & 7 == 2
            found.append((tag >> 3, bytes(read[at : at + value])))
            at += value
    return found


def seconds_of(time: bytes) -> tuple[object, object]:
    parts = dict(fields_of(time))
    return parts.get(1, 0), parts.get(2, 0)


def verify_by_hand(entries: Iterable[Any], debate: str) -> list[int]:
    """What the page says of the header, the chain and the order, without the contract; returns the payloads' fields."""
    before, last = bytes(32), 0
    epochs: list[Any] = []
    times: list[Any] = []
    kinds: list[int] = []
    for entry in entries:
        assert entry[-34:-32] == b"\x7a\x20"
        assert hashlib.sha256(before + entry[:-34]).digest() == entry[-32:]
        numbered = fields_of(entry)
        header: dict[int, Any] = dict(numbered)
        before, last = entry[-32:], last + 1
        assert numbered[-1] == (15, before)
        assert (header[1], header[2], header[3]) == (b"default", debate.encode(), last)
        assert header[5]
        epochs.append(header.get(4, 0))
        times.append(seconds_of(header[7]))
        (kind,) = [number for number, _ in numbered if number >= 16]
        kinds.append(kind)
    assert epochs == sorted(epochs)
    assert times == sorted(times)
    return kinds


async def test_a_log_is_verified_with_the_wire_format_and_sha_256_alone(tmp_path: Path) -> None:
    async with ScriptedGateway().served() as gateway, orchestrating(tmp_path, gateway) as orchestrator:
        debate = await orchestrator.create()
        watched = events_of(await orchestrator.watch(debate))
        ask: Any = orchestrator.connection.unary_stream("/parley.v1.OrchestratorService/ReadLog")
        request = b"\x0a" + bytes([len(debate)]) + debate.encode()
        parts = [part async for part in ask(request)]
    entries = [value for part in parts for number, value in fields_of(part) if number == 1]
    kinds = verify_by_hand(entries, debate)
    assert len(kinds) == len(watched)
    assert kinds[:2] == [16, 17], "it is accepted, then claimed"
    entries[3], entries[4] = entries[4], entries[3]
    with pytest.raises(AssertionError):
        verify_by_hand(entries, debate)
