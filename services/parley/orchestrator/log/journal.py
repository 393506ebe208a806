"""The log of a debate for its owner: one append is in flight, and all events that wait go into the next one.

An append begins as soon as somebody waits for an event; events that nobody waits for give others a moment to come along.

The log is the lock. If another replica has written at the place of an append, the claim is lost, whatever any clock says, and
the owner stops.
"""

import asyncio
import itertools
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from msgspec import Struct

from parley.orchestrator import metrics
from parley.orchestrator.log.envelope import (
    GENESIS,
    Envelope,
    check_recordable,
    create_event,
    open_entry,
    seal,
)
from parley.orchestrator.log.events import CorruptEventError
from parley.orchestrator.log.replay import RecordedState
from parley.runtime.backoff import Backoff, retry
from parley.runtime.clock import Clock
from parley.runtime.large_texts import in_thread_if_large, in_thread_per_tenant
from parley.storage.ports import AppendConflictError, Log, Record, StoreUnavailableError
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    Claimed,
    DebateCreated,
    Event,
    WaitFinished,
)

_PAGE = 1000
_BATCH = 256
_BATCH_BYTES = 4_000_000
"""After so many bytes the other events wait for the next record: stores refuse large records."""
_LARGE_BYTES = 1024 * 1024
"""Bytes of events. More of them are opened in a thread: they would block the loop for some milliseconds per MiB."""
_PATIENCE_SECONDS = 0.05
"""How long an event that nobody waits for waits for others, to be recorded with them: less than anyone who follows a debate sees."""
_COMPANY_SECONDS = 0.01
"""How long an outcome waits for those of steps beside it: the next step may begin that much later."""
_BACKOFF = Backoff(first=0.05, maximum=2.0)
_ID_BYTES = 12
"""Random bytes that tell the appends of one owner from those of any other; each record holds them."""
_MAX_CLAIMS = 5
"""How many owners in a row may release a debate that they cannot continue. The next one continues it as it can, or fails it."""


Publish = Callable[[Sequence[Envelope]], None]
"""Takes events that were just recorded."""


class ClaimLostError(Exception):
    """Another replica has written to the log: this one does not own the debate any more and must stop."""


class _PendingAppend(Struct, frozen=True):
    """Events to record together, and the future of who waits for them, if anyone does."""

    events: tuple[Event, ...]
    recorded: asyncio.Future[tuple[Envelope, ...]] | None = None


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


class Journal:
    """The log of one debate: read completely, then appended to by one owner.

    Attributes:
        recorded: The state that the log records, updated with each append.
        epoch: The claim that appends are written under.
        claimed_at: Sequence of that claim; 0 before `claim` is called.
    """

    def __init__(
        self,
        log: Log,
        clock: Clock,
        tenant: str,
        debate: str,
        events: Sequence[Envelope] = (),
        publish: Publish = lambda _events: None,
    ) -> None:
        """Start after `events`, which are all events of the log. `publish` gets those of each append once they are durable."""
        self.tenant = tenant
        self.debate = debate
        self.recorded = RecordedState.from_events(events)
        self.epoch = events[-1].epoch if events else 0
        self.claimed_at = 0
        self._claimed_since: float | None = None
        self._last = events[-1] if events else None
        self._log = log
        self._clock = clock
        self._publish = publish
        self._pending: list[_PendingAppend] = []
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._id = secrets.token_urlsafe(_ID_BYTES)
        self._appends = itertools.count(1)

    @property
    def sequence(self) -> int:
        """The sequence of the last event; 0 if there is none."""
        return self._last.sequence if self._last else 0

    @property
    def may_hand_over(self) -> bool:
        """Whether another version may have started this debate, and may still be able to continue it."""
        return self.epoch > self.recorded.attempt_epoch and self.recorded.claims < _MAX_CLAIMS

    async def claim(self, owner: str, *first: Event, code: str = "", then: Sequence[Event] = ()) -> None:
        """Append `first`, a claim under the next epoch, and `then` under that claim. `code` names what the owner runs.

        Raises:
            ClaimLostError: another replica was faster.
            StoreUnavailableError: it may be written or not; read the log again before another try.
        """
        sealed = self._seal(first)
        self.epoch += 1
        self._claimed_since = self._clock.monotonic()
        claim = create_event(f"claim/{self.epoch}", Claimed(owner=owner, code=code))
        sealed += self._seal([claim], sealed)
        await self._store([*sealed, *self._seal(then, sealed)])
        self.claimed_at = sealed[-1].sequence

    async def write_first_event(self, first: DebateCreated, size: int = 0) -> None:
        """Write the first event, without a claim, unless the log has it. The journal cannot be used after it.

        `size` is about how many bytes the event has.

        Raises:
            StoreUnavailableError: it may be written or not.
        """
        sealed = await in_thread_if_large(size, lambda: self._seal([create_event("created", first)]))
        with suppress(ClaimLostError):  # a faster writer has written the same first event
            await self._append(sealed, patient=False)

    async def append(self, *events: Event, may_wait: bool = False) -> tuple[Envelope, ...]:
        """Record events as one record. Return them once they are durable. `run_writer` must be running.

        If they `may_wait`, others are expected, and they are recorded with these or soon, as those of `enqueue`.

        Raises:
            UnrecordableError: they cannot be recorded; other events are not affected.
        """
        check_recordable(events)
        recorded: asyncio.Future[tuple[Envelope, ...]] = asyncio.get_running_loop().create_future()
        self._pending.append(_PendingAppend(events, recorded))
        if may_wait:
            self._wake_within(_COMPANY_SECONDS)
        else:
            self._wake.set()
        return await recorded  # if the caller is cancelled, the events are still recorded

    def enqueue(self, event: Event) -> None:
        """Record an event with the next append, or soon, without waiting for it. Raises as `append`."""
        check_recordable((event,))
        self._pending.append(_PendingAppend((event,)))
        self._wake_within(_PATIENCE_SECONDS)

    def _wake_within(self, seconds: float) -> None:
        """Let the writer append what waits once others have had a moment to come along."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._wake.set)

    async def wait_until_written(self) -> None:
        """Wait until all events so far are durable. `run_writer` must be running."""
        await self.append()  # nothing: its turn comes after theirs

    async def run_writer(self) -> None:
        """Append waiting events, until cancelled.

        Raises:
            ClaimLostError: the claim is lost; no event of the batch was written.
        """
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._pending:
                await self._write_batch()

    async def _write_batch(self) -> None:
        """Append the events that wait; those that do not fit one record are next."""
        sealed: list[Envelope] = []
        bounds: list[int] = []
        size = 0
        for waiting in self._pending:
            if len(bounds) == _BATCH or size > _BATCH_BYTES:
                break
            events = self._seal(waiting.events, sealed)
            sealed.extend(events)
            size += sum(len(each.entry) for each in events)
            bounds.append(len(sealed))
        batch, self._pending = self._pending[: len(bounds)], self._pending[len(bounds) :]
        if self._pending:
            self._wake.set()
        if sealed:
            await self._store(sealed, patient=True)
        start = 0
        for waiting, end in zip(batch, bounds, strict=True):
            if waiting.recorded is not None and not waiting.recorded.done():
                waiting.recorded.set_result(tuple(sealed[start:end]))
            start = end

    def _seal(self, events: Sequence[Event], ahead: Sequence[Envelope] = ()) -> list[Envelope]:
        last = ahead[-1] if ahead else self._last
        since = self._claimed_since
        sealed = []
        for event in events:
            last = seal(
                event,
                tenant=self.tenant,
                debate=self.debate,
                sequence=last.sequence + 1 if last else 1,
                epoch=self.epoch,
                time=self._time_after(last.time if last else None),
                before=last.hash if last else GENESIS,
                owner_seconds=None if since is None else self._clock.monotonic() - since,
            )
            sealed.append(last)
        return sealed

    def _time_after(self, before: datetime | None) -> datetime:
        now = self._clock.now()
        return now if before is None or now > before else before

    async def _store(self, sealed: Sequence[Envelope], *, patient: bool = False) -> None:
        await self._append(sealed, patient=patient)
        self._last = sealed[-1]
        self._publish(sealed)
        for event in sealed:
            self._measure_wait(event)
        self.recorded.apply(sealed, self._clock.monotonic())

    async def _append(self, sealed: Sequence[Envelope], *, patient: bool) -> None:
        record = Record(
            sealed[0].sequence, f"{self._id}-{next(self._appends)}", tuple(each.entry for each in sealed)
        )
        name, began = log_name(self.tenant, self.debate), self._clock.monotonic()
        try:
            await retry(
                lambda: self._log.append(name, record),
                on=StoreUnavailableError,
                backoff=_BACKOFF,
                clock=self._clock,
                attempts=None if patient else 1,
            )
        except AppendConflictError as conflict:
            raise ClaimLostError(f"debate {self.debate} was claimed by another replica") from conflict
        metrics.record_append(self._clock.monotonic() - began)

    def _measure_wait(self, event: Envelope) -> None:
        """Record the length of a wait that an event ends, also if an earlier owner started it."""
        since, created = self.recorded.waits_since.get(event.key), self.recorded.created
        if since is None or created is None:
            return
        match event.payload:
            case WaitFinished():
                metrics.record_wait_end(
                    created.spec.format, "providers", (event.time - since).total_seconds()
                )
            case CheckpointClosed() | CheckpointExpired():
                metrics.record_wait_end(created.spec.format, "person", (event.time - since).total_seconds())
