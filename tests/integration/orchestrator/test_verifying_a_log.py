"""A log can be verified with nothing but the contract and SHA-256, as docs/architecture/log.md says."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from parley.v1 import event_pb2, orchestrator_pb2
from tests.support.orchestration import Orchestrator, events_of, orchestrating
from tests.support.scripted_gateway import ScriptedGateway


def verified(entries: Iterable[bytes]) -> list[event_pb2.Event]:
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
    events = verified(entries)
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
        verified(entries)
