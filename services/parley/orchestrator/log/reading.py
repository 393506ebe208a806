"""The events of a debate as its log has them: each is opened, and checked against the one before."""

from collections.abc import Sequence
from functools import partial

from parley.orchestrator.log.envelope import GENESIS, Envelope, open_entry
from parley.orchestrator.log.events import CorruptEventError
from parley.runtime.large_texts import in_thread_per_tenant
from parley.storage.ports import Log, Record

_PAGE = 1000
_LARGE_BYTES = 1024 * 1024
"""Bytes of events. More of them are opened in a thread: they would block the loop for some milliseconds per MiB."""


def log_name(tenant: str, debate: str) -> str:
    """Return the name of a debate's log."""
    return f"{tenant}/{debate}"


def open_records(records: Sequence[Record], after: int, before: bytes) -> list[Envelope]:
    """Return the events of records that follow the event at sequence `after`, whose hash is `before`.

    Raises:
        CorruptEventError: an event is missing or damaged, or does not follow the previous one.
    """
    events: list[Envelope] = []
    for record in records:
        for sequence, entry in enumerate(record.entries, start=record.first):
            if sequence <= after:
                continue
            envelope = open_entry(entry, before)
            if sequence != after + 1 or envelope.sequence != sequence:
                message = f"log {envelope.debate} has a gap before event {sequence}"
                raise CorruptEventError(message)
            events.append(envelope)
            after, before = sequence, envelope.hash
    return events


async def open_in_thread_if_large(records: Sequence[Record], after: int, before: bytes) -> list[Envelope]:
    """Return what `open_records` returns. Open large records in a thread."""
    size = sum(len(entry) for record in records for entry in record.entries)
    if size <= _LARGE_BYTES:
        return open_records(records, after, before)
    return await in_thread_per_tenant(partial(open_records, records, after, before))


async def read_events(log: Log, tenant: str, debate: str) -> list[Envelope]:
    """Return all events of a debate. Their sequences and hashes are checked."""
    return await _read_from(log, log_name(tenant, debate), 0, GENESIS)


async def read_events_after(log: Log, tenant: str, last: Envelope) -> list[Envelope] | None:
    """Return the events of a tenant's debate after `last`, checked as in `read_events`; None if the log does not contain `last`.

    Events of an imported debate name the tenant that it had.
    """
    name, place = log_name(tenant, last.debate), last.sequence
    records = await log.read(name, place - 1, _PAGE)
    if not records or records[0].entries[place - records[0].first :][:1] != (last.entry,):
        return None
    events = await open_in_thread_if_large(records, place, last.hash)
    if len(records) == _PAGE:
        after, before = (events[-1].sequence, events[-1].hash) if events else (place, last.hash)
        events += await _read_from(log, name, after, before)
    return events


async def _read_from(log: Log, name: str, after: int, before: bytes) -> list[Envelope]:
    events: list[Envelope] = []
    while True:
        records = await log.read(name, after, _PAGE)
        found = await open_in_thread_if_large(records, after, before)
        events += found
        if len(records) < _PAGE:
            return events
        after, before = found[-1].sequence, found[-1].hash
