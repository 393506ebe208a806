"""Writes the status of a debate to its record in the index, under a claim; never over a later claim.

A claim, a conclusion and the end are written along with the events that say so.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from google.protobuf.message import Message

from parley.orchestrator import metrics
from parley.orchestrator.engine.inbox import Inbox, InboxEntry
from parley.orchestrator.log.debate_record import CANCELLED, COMPLETED, FAILED, PAUSED, WAITING, DebateRecord
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.model.times import time_text
from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger
from parley.storage.ports import StoreUnavailableError, Update
from parley.v1.event_pb2 import Claimed, Closed, Concluded

_logger = get_logger(__name__)


class StatusWriter:
    """Writes the record of one debate for its owner.

    Attributes:
        claimed_status: The status that is written with a claim; None leaves it as it is.
    """

    def __init__(
        self,
        record: DebateRecord,
        journal: Journal,
        index: DebateIndex,
        inbox: Inbox,
        clock: Clock,
        owner: str,
    ) -> None:
        """Write under the journal's epoch, and along with its appends. `owner` is the name of this replica in claims."""
        self._record = record
        self._journal = journal
        self._index = index
        self._inbox = inbox
        self._clock = clock
        self._owner = owner
        self._ending = journal.recorded.ending
        self._measured_end = journal.recorded.end_sequence
        self.claimed_status: str | None = None
        self._appended: Update | None = None
        journal.plan_update = self._plan_update

    def _plan_update(self, events: Sequence[Envelope]) -> Update | None:
        """Return the update of the record that goes along as events are appended, if any does."""
        planned = [update for event in events if (update := self._plan_after(event.payload))]
        if not planned:
            return None
        self._appended = planned[-1]
        return self._appended

    def _plan_after(self, payload: Message | None) -> Update | None:
        match payload:
            case Claimed():
                return self._plan_claim()
            case Concluded():
                return self._plan(final_status(payload), is_open=True, owner=self._owner)
            case Closed():
                return self._plan_closed()
            case _:
                return None

    async def write_claim(self) -> None:
        """Write a claim of a debate that the log closes, so that it cannot be recorded."""
        await self._index.write(self._plan_claim())

    async def renew_lease(self, heartbeat: int) -> bool:
        """Renew the owner's lease, and mark a limit that was reached as news. Return False if the record has a later claim."""
        recorded = self._journal.recorded
        # Neither a limit nor a cost is told before it is durable: whoever looks into the log would not find it.
        told = {"cost_micros": self._cost()} if self._journal.has_durable_outcomes else {}
        has_news = recorded.ending != self._ending and recorded.ending_sequence <= self._journal.sequence
        ending = recorded.ending if has_news else self._ending
        is_claimed = await self._index.renew_lease(
            self._record, self._journal.epoch, heartbeat, self._now(), told, has_news=has_news
        )
        self._ending = ending
        return is_claimed

    async def write_status(self, status: str) -> None:
        """Write a status of a debate that this owner runs."""
        await self._write(self._plan(status, is_open=True, owner=self._owner))

    async def notify_status(self, status: str) -> None:
        """Write a status as `write_status` does, but ignore an unavailable store: the log is the truth."""
        if status == WAITING:
            metrics.count_wait(self._record.format)
        try:
            await self.write_status(status)
        except StoreUnavailableError as unavailable:
            # Only lists show an old status until the next one is written.
            _logger.warning("store unavailable; the debate's record is updated later", error=str(unavailable))

    async def request_owner(self, status: str) -> None:
        """Write that any replica that can continue the debate may claim it at once."""
        await self._write(self._plan(status, is_open=True, owner=None))

    async def write_rest(self, status: str, due: datetime | None = None) -> None:
        """Write that it needs no owner until it is `due` or gets an intervention. Reopen it if one has just arrived."""
        await self._write(self._plan(status, is_open=False, owner=None, due=due))
        if await self._list_waiting():
            await self._index.reopen(self._record.tenant, self._record.debate)

    async def mark_interventions(self) -> None:
        """Mark the interventions that the log records, before it is closed. Who asked for others sees then that it has ended."""
        recorded = self._journal.recorded
        for entry in await self._list_waiting() if recorded.interventions else ():
            number = recorded.interventions.get(entry.intervened.request_id)
            if number is not None:
                await self._inbox.mark_recorded(entry.key, number[0])

    async def write_closed(self) -> None:
        """Write that it is closed."""
        await self._write(self._plan_closed())

    async def release(self) -> None:
        """Release the debate, so that another replica can continue at once."""
        recorded = self._journal.recorded
        if recorded.closed:
            await self._index.release(self._record, self._journal.epoch)
        elif recorded.concluded is not None:
            # The record may not have the final status yet, by which other replicas see what is left to do.
            await self.request_owner(final_status(recorded.concluded))
        elif recorded.failure is not None or recorded.paused:
            # Nor the status in which it rests: lists would tell of a debate that was cut off.
            await self.write_rest(FAILED if recorded.failure is not None else PAUSED)
        else:
            await self._index.release(self._record, self._journal.epoch)

    @contextmanager
    def measure_end(self) -> Iterator[None]:
        """Count the debate as running while the block runs, and then record its end as `record_end` does."""
        with metrics.count_running():
            try:
                yield
            finally:
                self.record_end()

    def record_end(self) -> None:
        """Record metrics of an end that came under this owner, once it is durable: else a later owner ends it again."""
        recorded, record = self._journal.recorded, self._record
        if not self._measured_end < recorded.end_sequence <= self._journal.sequence:
            return
        self._measured_end = recorded.end_sequence
        concluded, used = recorded.concluded, recorded.meter
        outcome = FAILED
        if concluded is not None:
            outcome, used = final_status(concluded), recorded.spent
        metrics.record_debate_end(
            record.format,
            outcome.lower(),
            (self._clock.now() - record.accepted_at).total_seconds(),
            tenant=record.tenant,
            tokens=used.tokens,
            cost_micros=used.cost_micros,
        )

    async def _list_waiting(self) -> Sequence[InboxEntry]:
        return await self._inbox.list_waiting_for(self._record.key)

    async def _write(self, update: Update) -> None:
        """Write a status, unless it was just written along with an append: then give notice of that."""
        appended, self._appended = self._appended, None
        if appended is not None and _says_the_same(appended, update):
            self._index.announce(appended)
        else:
            await self._index.write(update)

    def _plan_claim(self) -> Update:
        return self._index.plan_claim(
            self._record, self._owner, self._journal.epoch, self._now(), status=self.claimed_status
        )

    def _plan_closed(self) -> Update:
        concluded = self._journal.recorded.concluded
        assert concluded is not None
        return self._plan(final_status(concluded), is_open=False, owner=None)

    def _plan(self, status: str, *, is_open: bool, owner: str | None, due: datetime | None = None) -> Update:
        return self._index.plan_status(
            self._record,
            self._journal.epoch,
            status=status,
            is_open=is_open,
            owner=owner,
            updated=self._now(),
            cost_micros=self._cost(),
            due=None if due is None else time_text(due),
        )

    def _cost(self) -> int | None:
        """Return what the recorded calls cost; None if a price is unknown."""
        used = self._journal.recorded.usage
        return used.cost_micros if used.HasField("cost_micros") else None

    def _now(self) -> str:
        return time_text(self._clock.now())


def _says_the_same(one: Update, other: Update) -> bool:
    """Return whether two updates write the same status, of the same owner."""
    return all(one.changes.get(name) == other.changes[name] for name in ("status", "open", "owner"))


def final_status(concluded: Concluded) -> str:
    """Return the final status of a debate."""
    return COMPLETED if concluded.HasField("outcome") else CANCELLED
