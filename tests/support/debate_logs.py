"""Logs of debates in tests: one whose writer dies, one that an owner left, what attempts came to, and what holds of each log."""

import asyncio
from collections.abc import Sequence

from parley.orchestrator.api.folding import fold
from parley.orchestrator.log.debate_record import RUNNING
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.journal import log_name
from parley.storage.ports import Log, Record
from parley.v1.event_pb2 import (
    Closed,
    Concluded,
    DebateFailed,
    Paused,
    Resumed,
    StepFailed,
    StepSucceeded,
)
from tests.support.debate_records import create_record
from tests.support.orchestration import TENANT, Backstage
from tests.support.passing_log import PassingLog

__all__ = ["StoppingLog", "check_log", "left_behind", "outcomes"]


class StoppingLog(PassingLog):
    """A log whose writer dies, so to speak: at an event's append, before or after it is durable, nothing goes on."""

    def __init__(self, log: Log, at: int, *, durable: bool) -> None:
        self.stopped = asyncio.Event()
        super().__init__(log)
        self._at = at
        self._durable = durable

    async def append(self, log: str, record: Record) -> None:
        here = record.first <= self._at <= record.last
        if self.stopped.is_set() or (here and not self._durable):
            await self._stop()
        await self._log.append(log, record)
        if here:
            await self._stop()

    async def _stop(self) -> None:
        self.stopped.set()
        await asyncio.Event().wait()


async def left_behind(stage: Backstage, events: Sequence[Envelope]) -> str:
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
