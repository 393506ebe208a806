"""Deletes debates: a note is written first, then all data is removed everywhere.

After a crash, or if a service is unavailable, the note stays, and any replica continues: every step may be repeated.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from msgspec import Struct

from parley.orchestrator.delivery.deliveries import DeliveryStore
from parley.orchestrator.engine.inbox import Inbox
from parley.orchestrator.log.debate_record import CANCELLED, COMPLETED, DebateRecord
from parley.orchestrator.log.deletions import Deletion, DeletionStore
from parley.orchestrator.log.feedback import FeedbackStore
from parley.orchestrator.log.imported_receipts import ImportedReceiptStore
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.reading import log_name
from parley.orchestrator.model.errors import ServiceUnavailableError, StepError
from parley.orchestrator.model.retention import Retention
from parley.orchestrator.peers.services import Services
from parley.runtime.clock import Clock
from parley.runtime.clock_watch import ClockWatch
from parley.runtime.errors import ParleyError, failed_precondition, not_found
from parley.runtime.labels import label_scope
from parley.runtime.logs import get_logger
from parley.storage.ports import KeyMissingError, Log, StorageError, StoreDamagedError

_DELETE_NOW_SECONDS: Final = 2.0
"""How long a caller waits until all data is removed."""
_POLL_SECONDS: Final = 60.0
"""How often deletions in progress are continued."""
_RETENTION_CHECK_SECONDS: Final = 3600.0
"""How often debates whose retention is over are deleted."""
_ABANDONED_AFTER: Final = timedelta(hours=1)
"""After so long, a log without a record belongs to no debate."""
_PAGE: Final = 100
_INTERVENTION_RETENTION: Final = timedelta(days=30)
"""How long a decided intervention is kept, so that its request id is known."""
_REASON: Final = "the debate was deleted"

_logger = get_logger(__name__)


class DebateDeleter(Struct, frozen=True):
    """Deletes debates on request, and in `run` those whose retention is over."""

    log: Log
    index: DebateIndex
    inbox: Inbox
    feedback: FeedbackStore
    deliveries: DeliveryStore
    imported_receipts: ImportedReceiptStore
    store: DeletionStore
    services: Services
    clock: Clock
    retention: Retention

    async def delete(self, tenant: str, debate: str, *, ratings: bool) -> bool:
        """Delete a debate that rests. It cannot be read from now on. Return whether all its data is removed already.

        Raises:
            ParleyError: the debate does not exist, or does not rest.
            StorageError: the store is unavailable; the debate may be deleted or not.
        """
        deletion = Deletion(tenant, debate, ratings=ratings)
        record = await self.index.get_sealed(tenant, debate)
        if record is None:
            raise not_found("debate", debate)
        if not await self._start_deletion(deletion, record):
            raise _running_error(record)
        try:
            async with asyncio.timeout(_DELETE_NOW_SECONDS):
                return await self._finish_deletion(deletion)
        except (TimeoutError, StorageError) as error:
            _logger.info("a deletion is finished later", debate=debate, error=str(error))
            return False

    async def run(self) -> None:
        """Finish deletions and delete debates whose retention is over, until cancelled."""
        retained_at, watch = -_RETENTION_CHECK_SECONDS, ClockWatch(self.clock)
        while True:
            is_steady = watch.is_steady()
            try:
                await self.finish_all()
                if is_steady:
                    await self.delete_abandoned()
                if is_steady and self.clock.monotonic() >= retained_at + _RETENTION_CHECK_SECONDS:
                    await self.delete_old()
                    retained_at = self.clock.monotonic()
            except StorageError as error:
                _logger.warning("store unavailable; deletions are finished later", error=str(error))
            except Exception:
                # One debate that cannot be deleted must not end the orchestrator.
                _logger.exception("a deletion failed; trying again later")
            await self.clock.sleep(_POLL_SECONDS)

    async def finish_all(self) -> None:
        """Continue every deletion in progress, also those that other replicas started."""
        for deletion in await self.store.list_all():
            with _skip_damaged(deletion):
                await self._continue_deletion(deletion)

    async def _continue_deletion(self, deletion: Deletion) -> None:
        record = await self.index.get_sealed(deletion.tenant, deletion.debate)
        # If the record still exists, the caller got no answer yet: the deletion is tried once more.
        if record is None or (record.is_resting and await self.index.remove(record)):
            await self._finish_deletion(deletion)
        else:
            await self.store.remove(deletion.key)

    async def delete_abandoned(self) -> None:
        """Delete logs without a record: their process ended between writing the log and the record."""
        before = (self.clock.now() - _ABANDONED_AFTER).isoformat(timespec="microseconds")
        for deletion in await self.store.list_started(before):
            with _skip_damaged(deletion):
                if await self.index.get(deletion.tenant, deletion.debate) is not None:
                    await self.store.remove(deletion.key)
                elif await self.store.start_deletion(deletion, before):
                    await self._finish_deletion(deletion)

    async def delete_old(self) -> None:
        """Delete debates whose retention is over, and interventions that were decided long ago."""
        now = self.clock.now()
        async for tenant in self.index.list_tenants():
            kept = self.retention.for_tenant(tenant)
            if kept is not None:
                await self._delete_before(tenant, (now - kept).isoformat(timespec="microseconds"))
        await self.inbox.delete_decided((now - _INTERVENTION_RETENTION).isoformat(timespec="microseconds"))

    async def _delete_before(self, tenant: str, before: str) -> None:
        while page := await self.index.list_resting(tenant, before, _PAGE):
            for record in page:
                deletion = Deletion(tenant, record.debate, ratings=False)
                if not await self._start_deletion(deletion, record):
                    return
                with _skip_damaged(deletion):
                    await self._finish_deletion(deletion)

    async def _start_deletion(self, deletion: Deletion, record: DebateRecord) -> bool:
        """Write a note and remove the debate from the index. Return False if the debate does not rest, or was claimed since."""
        if not record.is_resting:
            return False
        await self.store.put(deletion)
        if await self.index.remove(record):
            return True
        await self.store.remove(deletion.key)
        return False

    async def _finish_deletion(self, deletion: Deletion) -> bool:
        """Remove all data of a debate. Return False if a service is unavailable."""
        await self.inbox.delete_for_debate(deletion.key)
        await self.feedback.delete_for_debate(deletion.tenant, deletion.debate)
        await self.deliveries.delete_for_debate(deletion.tenant, deletion.debate)
        await self.imported_receipts.delete(deletion.tenant, deletion.debate)
        # Last, since the data key that all of these share goes with the log.
        await self.log.delete(log_name(deletion.tenant, deletion.debate))
        with label_scope(tenant=deletion.tenant, debate=deletion.debate):
            try:
                await self.services.memory.forget_debate(deletion.debate)
                if deletion.ratings:
                    await self.services.ratings.void_match(deletion.debate, _REASON)
            except (ServiceUnavailableError, StepError) as error:
                _logger.warning("a deletion is finished later", error=str(error))
                return False
        await self.store.remove(deletion.key)
        return True


@contextmanager
def _skip_damaged(deletion: Deletion) -> Iterator[None]:
    """Log a deletion that stored data holds up, so that the others go on. A store that is away ends the round."""
    try:
        yield
    except (StoreDamagedError, KeyMissingError) as error:
        with label_scope(tenant=deletion.tenant, debate=deletion.debate):
            _logger.warning("a deletion cannot be finished; trying again later", error=str(error))


def _running_error(record: DebateRecord) -> ParleyError:
    if record.status in (COMPLETED, CANCELLED):
        message = f"debate {record.debate} has ended, but its answer is still being sent to memory and ratings; try again in a moment"
    else:
        message = f"debate {record.debate} is not at rest; cancel it first"
    return failed_precondition("DEBATE_RUNNING", message)
