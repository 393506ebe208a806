"""The log of a debate for its owner: one append is in flight, and all events that wait go into the next one.

What the owner records counts for it at once, before it is durable: what it computes goes on meanwhile. Only what leaves it has to wait, since
nobody else may see the effect of an event that a crash undoes: `write_outcomes` comes before each call of a model, and what is published is
durable. (Output commit, as in Elnozahy et al., "A survey of rollback-recovery protocols in message-passing systems", 2002.)
An append begins as soon as somebody waits for an event; until then, events give others a moment to come along.

The log is the lock. If another replica has written at the place of an append, the claim is lost, whatever any clock says, and
the owner stops.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from parley.orchestrator import metrics
from parley.orchestrator.log.envelope import (
    GENESIS,
    Envelope,
    check_recordable,
    create_event,
    seal,
)
from parley.orchestrator.log.reading import log_name
from parley.orchestrator.log.replay import RecordedState
from parley.runtime.backoff import Backoff, retry
from parley.runtime.clock import Clock
from parley.runtime.large_texts import in_thread_if_large
from parley.storage.ports import AppendConflictError, Insert, Log, Record, StoreUnavailableError, Update
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    Claimed,
    DebateCreated,
    Event,
    WaitFinished,
)

_BATCH = 256
_BATCH_BYTES = 4_000_000
"""After so many bytes the other events wait for the next record: stores refuse large records."""
_PATIENCE_SECONDS = 0.2
"""How long an event that nobody waits for waits for others, to be written with them: less than anyone who follows a debate sees."""
_COMPANY_SECONDS = 0.01
"""How long an outcome waits for those of steps beside it: the next step may begin that much later."""
_BACKOFF = Backoff(first=0.05, maximum=2.0)
_ID_BYTES = 12
"""Random bytes that tell the appends of one owner from those of any other; each record holds them."""
_MAX_CLAIMS = 5
"""How many owners in a row may release a debate that they cannot continue. The next one continues it as it can, or fails it."""


Publish = Callable[[Sequence[Envelope]], None]
"""Takes events that have just become durable."""

PlanUpdate = Callable[[Sequence[Envelope]], Update | None]
"""Returns the update of the debate's record in the index that follows from events, if any does. It is written along with them."""


class ClaimLostError(Exception):
    """Another replica has written to the log: this one does not own the debate any more and must stop."""


class Journal:
    """The log of one debate: read completely, then appended to by one owner.

    Attributes:
        recorded: The state of all events so far, those that are not durable yet among them.
        sequence: That of the last event that is durable; 0 if there is none.
        epoch: The claim that appends are written under.
        claimed_at: Sequence of that claim; 0 before `claim` is called.
        plan_update: Asked before each append.
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
        self.plan_update: PlanUpdate = lambda _events: None
        self._claimed_since: float | None = None
        self.sequence = events[-1].sequence if events else 0
        self._last = events[-1] if events else None
        self._time = events[-1].time if events else datetime.min.replace(tzinfo=UTC)
        self._last_outcome = 0
        self._log = log
        self._clock = clock
        self._publish = publish
        self._waiting: list[Sequence[Envelope]] = []
        self._batch: list[Envelope] = []
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._batch_written = asyncio.Event()
        self._ended_waits: deque[tuple[int, str, float]] = deque()
        self._id = secrets.token_urlsafe(_ID_BYTES)

    @property
    def may_hand_over(self) -> bool:
        """Whether another version may have started this debate, and may still be able to continue it."""
        return self.epoch > self.recorded.attempt_epoch and self.recorded.claims < _MAX_CLAIMS

    @property
    def has_durable_outcomes(self) -> bool:
        """Whether all outcomes so far are durable."""
        return self.sequence >= self._last_outcome

    async def claim(
        self,
        owner: str,
        *first: Event,
        code: str = "",
        then: Sequence[Event] = (),
        insert: Insert | None = None,
    ) -> None:
        """Append `first`, a claim under the next epoch, and `then` under that claim. `code` names what the owner runs.

        `insert` is the record of a new debate, which is stored before them.

        Raises:
            ClaimLostError: another replica was faster.
            DuplicateError: the record could not be inserted.
            StoreUnavailableError: it may be written or not; read the log again before another try.
        """
        sealed = self._seal(first)
        self.epoch += 1
        self._claimed_since = self._clock.monotonic()
        claim = create_event(f"claim/{self.epoch}", Claimed(owner=owner, code=code))
        sealed += self._seal([claim], sealed)
        self.claimed_at = sealed[-1].sequence
        sealed += self._seal(then, sealed)
        await self._append(sealed, patient=False, insert=insert)
        self._apply(sealed)
        self._notify_written(sealed)

    async def write_first_event(self, first: DebateCreated, size: int = 0) -> None:
        """Write the first event, without a claim, unless the log has it. The journal cannot be used after it.

        `size` is about how many bytes the event has.

        Raises:
            StoreUnavailableError: it may be written or not.
        """
        sealed = await in_thread_if_large(size, lambda: self._seal([create_event("created", first)]))
        with suppress(ClaimLostError):  # a faster writer has written the same first event
            await self._append(sealed, patient=False)

    async def append(self, *events: Event) -> None:
        """Record events as one record, and wait until they are durable. `run_writer` must be running.

        Raises:
            UnrecordableError: they cannot be recorded; other events are not affected.
        """
        sealed = self._take(events)
        # Such as a person's answer: it may be used before the caller goes on.
        self._last_outcome = sealed[-1].sequence
        await self.wait_until_written()  # if the caller is cancelled, the events are still written

    def record(self, event: Event, *, is_paid: bool = False) -> None:
        """Record an outcome. It counts at once; what leaves this owner next waits for it with `write_outcomes`.

        If it `is_paid`, it is written within a moment, also if nothing waits for it: it would have to be paid for again. Raises as `append`.
        """
        (sealed,) = self._take((event,))
        self._last_outcome = sealed.sequence
        self._wake_within(_COMPANY_SECONDS if is_paid else _PATIENCE_SECONDS)

    def enqueue(self, event: Event) -> None:
        """Record an event that follows from others, for which nothing waits. Raises as `append`."""
        self._take((event,))
        self._wake_within(_PATIENCE_SECONDS)

    async def write_outcomes(self, *, may_wait: bool = False) -> None:
        """Wait until all outcomes so far, and what others append, are durable. If they `may_wait`, others are expected, and are given a moment to come along."""
        if not self.has_durable_outcomes:
            if may_wait:
                self._wake_within(_COMPANY_SECONDS)
            else:
                self._wake.set()
            await self.wait_for_outcomes()

    async def wait_for_outcomes(self) -> None:
        """Wait until all outcomes so far are durable, without hurrying them."""
        await self._wait_until_written(self._last_outcome)

    async def wait_until_written(self) -> None:
        """Wait until all events so far are durable. `run_writer` must be running."""
        if self._last is not None:
            self._wake.set()
            await self._wait_until_written(self._last.sequence)

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
            if self._waiting:
                await self._write_batch(patient=True)

    async def write_rest(self) -> None:
        """Write what is not durable yet, once `run_writer` was cancelled.

        Raises:
            ClaimLostError: the claim is lost.
            StoreUnavailableError: it may be written or not.
        """
        while self._batch or self._waiting:
            await self._write_batch(patient=False)

    def _take(self, events: Sequence[Event]) -> Sequence[Envelope]:
        """Let events wait for the next append, as one record. They count at once."""
        sealed = self._seal(events)
        check_recordable(sealed)
        self._waiting.append(sealed)
        self._apply(sealed)
        return sealed

    def _apply(self, sealed: Sequence[Envelope]) -> None:
        self._last = sealed[-1]
        for event in sealed:
            self._note_wait_end(event)
        self.recorded.apply(sealed, self._clock.monotonic())

    def _wake_within(self, seconds: float) -> None:
        """Let the writer append what waits once others have had a moment to come along."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._wake.set)

    async def _wait_until_written(self, sequence: int) -> None:
        while self.sequence < sequence:
            await self._batch_written.wait()

    async def _write_batch(self, *, patient: bool) -> None:
        """Append the events that wait; those that do not fit one record are next. What may be written already is sent again first."""
        if not self._batch:
            self._batch = self._next_batch()
        await self._append(self._batch, patient=patient)
        written, self._batch = self._batch, []
        self._notify_written(written)

    def _next_batch(self) -> list[Envelope]:
        batch: list[Envelope] = []
        size = count = 0
        for sealed in self._waiting:
            if count == _BATCH or size > _BATCH_BYTES:
                break
            batch += sealed
            size += sum(len(each.entry) for each in sealed)
            count += 1
        del self._waiting[:count]
        if self._waiting:
            self._wake.set()
        return batch

    def _notify_written(self, written: Sequence[Envelope]) -> None:
        self.sequence = written[-1].sequence
        self._measure_waits()
        self._publish(written)
        self._batch_written.set()
        self._batch_written = asyncio.Event()

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
                time=self._next_time(),
                before=last.hash if last else GENESIS,
                owner_seconds=None if since is None else self._clock.monotonic() - since,
            )
            sealed.append(last)
        return sealed

    def _next_time(self) -> datetime:
        """Return the time of the next event: now, but not before the event before."""
        self._time = max(self._time, self._clock.now())
        return self._time

    async def _append(
        self, sealed: Sequence[Envelope], *, patient: bool, insert: Insert | None = None
    ) -> None:
        first = sealed[0].sequence
        record = Record(first, f"{self._id}-{first}", tuple(each.entry for each in sealed))
        name, began = log_name(self.tenant, self.debate), self._clock.monotonic()
        update = self.plan_update(sealed)
        try:
            await retry(
                lambda: self._log.append(name, record, insert=insert, update=update),
                on=StoreUnavailableError,
                backoff=_BACKOFF,
                clock=self._clock,
                attempts=None if patient else 1,
            )
        except AppendConflictError as conflict:
            raise ClaimLostError(f"debate {self.debate} was claimed by another replica") from conflict
        metrics.record_append(self._clock.monotonic() - began)

    def _note_wait_end(self, event: Envelope) -> None:
        """Note the length of a wait that an event ends, also if an earlier owner started it. It is measured once that is durable."""
        match event.payload:
            case WaitFinished():
                whom = "providers"
            case CheckpointClosed() | CheckpointExpired():
                whom = "person"
            case _:
                return
        since = self.recorded.waits_since.get(event.key)
        if since is not None:
            self._ended_waits.append((event.sequence, whom, (event.time - since).total_seconds()))

    def _measure_waits(self) -> None:
        created = self.recorded.created
        while self._ended_waits and self._ended_waits[0][0] <= self.sequence:
            _, whom, seconds = self._ended_waits.popleft()
            if created is not None:
                metrics.record_wait_end(created.spec.format, whom, seconds)
