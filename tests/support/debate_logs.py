"""Logs of debates in tests: one whose writer dies, one that an owner left, what attempts came to, and what holds of each log."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.log.debate_record import COMPLETED, RUNNING
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.reading import log_name
from parley.storage.ports import Log, Record
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import (
    Closed,
    Concluded,
    DebateCreated,
    DebateFailed,
    Event,
    Paused,
    Resumed,
    StepFailed,
    StepSucceeded,
)
from tests.support.debate_records import create_record
from tests.support.orchestration import TENANT, Backstage, backstage
from tests.support.passing_log import PassingLog
from tests.support.scripted_gateway import ScriptedGateway

P = TypeVar("P")


class StoppingLog(PassingLog):
    """A log whose writer dies, so to speak: at an event's append, before or after it is durable, nothing goes on."""

    def __init__(self, log: Log, at: int, *, durable: bool) -> None:
        self.stopped = asyncio.Event()
        super().__init__(log)
        self._at = at
        self._durable = durable

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        here = record.first <= self._at <= record.last
        if self.stopped.is_set() or (here and not self._durable):
            await self._stop()
        await self._log.append(log, record, **beside)
        if here:
            await self._stop()

    async def _stop(self) -> None:
        self.stopped.set()
        await asyncio.Event().wait()


def hold_append(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch, kind: str
) -> tuple[asyncio.Event, asyncio.Event]:
    """Hold the first append of an event of a kind. Return the events that are set then, and that let it be written."""
    write, reached, released = stage.store.log.append, asyncio.Event(), asyncio.Event()

    async def hold_first(log: str, record: Record, **beside: Any) -> None:
        kinds = [Event.FromString(each).WhichOneof("payload") for each in record.entries]
        if not reached.is_set() and kind in kinds:
            reached.set()
            await released.wait()
        await write(log, record, **beside)

    monkeypatch.setattr(stage.store.log, "append", hold_first)
    return reached, released


async def leave_log(stage: Backstage, events: Sequence[Envelope]) -> str:
    """Put a log into the store as an owner would have left it, and return the debate's id."""
    first = events[0]
    form = fold(events).spec.format
    record = create_record(
        first.tenant, first.debate, first.time, RUNNING, request_id="kept", format=form, epoch=1
    )
    name = log_name(first.tenant, first.debate)
    await stage.store.log.append(name, Record(1, "kept", tuple(event.entry for event in events)))
    await stage.replica().dependencies.index.insert(record)
    return first.debate


async def run_debate(
    folder: Path, gateway: ScriptedGateway, spec: DebateCreated, formats: Formats | None = None
) -> list[Envelope]:
    """Run a debate to its answer on a store in a folder, check its log, and return it."""
    async with backstage(folder, gateway, formats) as stage, stage.replica() as replica:
        events = await stage.comes_to(await replica.create(spec), COMPLETED)
    check_log(events)
    return events


async def count_claims(stage: Backstage, debate: str) -> int:
    """How often an owner has claimed a debate."""
    return (await stage.kinds(debate)).count("claimed")


def payloads_of(events: Sequence[Envelope], kind: type[P]) -> list[P]:
    """The payloads of a kind in a log, in order."""
    return [event.payload for event in events if isinstance(event.payload, kind)]


def find_concluded(events: Sequence[Envelope]) -> Concluded:
    """The event that ends the debate, and says how."""
    (found,) = payloads_of(events, Concluded)
    return found


def outcome_of(events: Sequence[Envelope]) -> Outcome:
    """What the debate came to."""
    return find_concluded(events).outcome


def outcomes(events: Sequence[Envelope]) -> dict[tuple[str, int], str]:
    """What each attempt at each step came to, in a word or two."""
    found: dict[tuple[str, int], str] = {}
    for event in events:
        match event.payload:
            case StepSucceeded() as succeeded:
                reply = succeeded.reply.text if succeeded.HasField("reply") else str(succeeded.value)
                found[event.key, event.attempt] = reply
            case StepFailed() as failed:
                found[event.key, event.attempt] = f"failed: {failed.reason}"
            case _:
                pass
    return found


def check_log(events: Sequence[Envelope]) -> None:
    """What holds for every log of a debate that is closed. (That it is dense and chained was checked by reading it.)"""
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert [event.time for event in events] == sorted(event.time for event in events)
    epochs = [event.epoch for event in events]
    assert epochs == sorted(epochs)
    claims = [event.epoch for event in events if event.kind == "claimed"]
    assert claims == list(range(1, len(claims) + 1))
    names = [(event.kind, event.key, event.attempt) for event in events]
    assert len(set(names)) == len(names), "a key, kind and attempt stand once"
    payloads = [event.payload for event in events]
    assert sum(isinstance(each, Concluded) for each in payloads) == 1
    assert sum(isinstance(each, Closed) for each in payloads) == 1
    assert isinstance(payloads[-1], Closed)
    assert not any(isinstance(each, DebateFailed | Paused | Resumed) for each in payloads[-2:])
    assert log_name(events[0].tenant, events[0].debate) == f"{TENANT}/{events[0].debate}"
