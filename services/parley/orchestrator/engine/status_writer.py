"""Writes the status of a debate to its record in the index, under a claim; never over a later claim."""

from collections.abc import Sequence
from datetime import datetime

from parley.orchestrator import metrics
from parley.orchestrator.engine.inbox import Inbox, InboxEntry
from parley.orchestrator.log.debate_record import CANCELLED, COMPLETED, FAILED, PAUSED, WAITING, DebateRecord
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.model.times import time_text
from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger
from parley.storage.ports import StoreUnavailableError
from parley.v1.event_pb2 import Concluded

_logger = get_logger(__name__)


class StatusWriter:
    """Writes the record of one debate for its owner."""

    def __init__(
        self,
        record: DebateRecord,
        journal: Journal,
        index: DebateIndex,
        inbox: Inbox,
        clock: Clock,
        owner: str,
    ) -> None:
        """Write under the journal's epoch. `owner` is the name of this replica in claims."""
        self._record = record
        self._journal = journal
        self._index = index
        self._inbox = inbox
        self._clock = clock
        self._owner = owner
        self._ending = journal.recorded.ending
        self._claimed_status: str | None = None

    async def write_claim(self, status: str | None = None) -> None:
        """Write the claim that the log records, and the status if it changes."""
        await self._index.record_claim(
            self._record, self._owner, self._journal.epoch, self._now(), status=status
        )
        self._claimed_status = status

    async def renew_lease(self, heartbeat: int) -> bool:
        """Renew the owner's lease, and mark a limit that was reached as news. Return False if the record has a later claim."""
        ending = self._journal.recorded.ending
        has_news, self._ending = ending != self._ending, ending
        return await self._index.renew_lease(
            self._record, self._journal.epoch, heartbeat, self._now(), self._cost(), has_news=has_news
        )

    async def write_status(self, status: str) -> None:
        """Write a status of a debate that this owner runs, unless the claim was written with it just now."""
        claimed, self._claimed_status = self._claimed_status, None
        if status == claimed:
            return
        await self._write(status, is_open=True, owner=self._owner)

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
        await self._write(status, is_open=True, owner=None)

    async def write_rest(self, status: str, due: datetime | None = None) -> None:
        """Write that it needs no owner until it is `due` or gets an intervention. Reopen it if one has just arrived."""
        await self._write(status, is_open=False, owner=None, due=due)
        if await self._list_waiting():
            await self._index.reopen(self._record.tenant, self._record.debate)

    async def write_closed(self) -> None:
        """Write that it is closed, and mark the interventions that the log records. Who asked for others sees that it has ended."""
        recorded = self._journal.recorded
        assert recorded.concluded is not None
        for entry in await self._list_waiting() if recorded.interventions else ():
            number = recorded.interventions.get(entry.intervened.request_id)
            if number is not None:
                await self._inbox.mark_recorded(entry.key, number[0])
        await self._write(final_status(recorded.concluded), is_open=False, owner=None)

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

    async def _list_waiting(self) -> Sequence[InboxEntry]:
        return await self._inbox.list_waiting_for(self._record.key)

    async def _write(
        self, status: str, *, is_open: bool, owner: str | None, due: datetime | None = None
    ) -> None:
        await self._index.update_status(
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


def final_status(concluded: Concluded) -> str:
    """Return the final status of a debate."""
    return COMPLETED if concluded.HasField("outcome") else CANCELLED
