"""Keeps debates of other systems: their logs as they are, under their ids, with nothing left to run."""

import base64
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import grpc
from msgspec import Struct

from parley.orchestrator.log.debate_record import COMPLETED, DebateRecord
from parley.orchestrator.log.deletions import DeletionStore
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.imported_receipts import ImportedReceiptStore
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.reading import log_name, read_events
from parley.orchestrator.model.labels import label_texts
from parley.orchestrator.model.short_text import to_listed_question
from parley.orchestrator.model.times import timestamp
from parley.runtime.clock import Clock
from parley.runtime.errors import ParleyError, failed_precondition
from parley.storage.ports import AppendConflictError, DuplicateError, Log, Record
from parley.v1.debate_pb2 import ImportedDebate
from parley.v1.receipt_pb2 import GetReceiptResponse

_BATCH_BYTES: Final = 4_000_000
_BATCH: Final = 256


class DebateImporter(Struct, frozen=True):
    """Keeps debates whose logs and receipts were verified."""

    log: Log
    index: DebateIndex
    receipts: ImportedReceiptStore
    deletions: DeletionStore
    clock: Clock

    async def keep(
        self, tenant: str, events: Sequence[Envelope], receipt: GetReceiptResponse, imported_by: str
    ) -> bool:
        """Keep a closed debate. Return whether it was here already, with the same events.

        Raises:
            ParleyError: another debate has its id, or one with its id is being deleted.
            StorageError: the store is unavailable. The same call again is right.
        """
        debate, now = events[0].debate, self.clock.now()
        if await self._is_kept(tenant, events):
            return True
        begun = now.isoformat(timespec="microseconds")
        # The note makes the log known if this process ends before the record is written.
        await self._record_log_start(tenant, debate, begun)
        await self._write_log(tenant, events)
        await self.receipts.put(tenant, debate, receipt)
        note = ImportedDebate(imported_by=imported_by, import_time=timestamp(now), key_id=receipt.key.id)
        try:
            await self.index.insert(_create_record(tenant, events, note, begun))
        except DuplicateError:  # the same import, at the same time
            if not await self._is_kept(tenant, events):
                raise _exists_error(debate) from None
        await self.deletions.remove(f"{tenant}/{debate}")
        return False

    async def _record_log_start(self, tenant: str, debate: str, begun: str) -> None:
        """Note that the log is written now, also where another import broke off or goes on. Raise ParleyError during a deletion."""
        while True:
            with suppress(DuplicateError):
                await self.deletions.record_log_start(tenant, debate, begun)
                return
            # Renewed, so that nobody takes the log for abandoned while it is written.
            if await self.deletions.renew_log_start(tenant, debate, begun):
                return
            if await self.deletions.is_deleting(tenant, debate):
                message = f"a debate {debate} is being deleted here; import it when that is done"
                raise failed_precondition("DEBATE_BEING_DELETED", message)

    async def _is_kept(self, tenant: str, events: Sequence[Envelope]) -> bool:
        """Return whether a debate is here with exactly these events. Raise ParleyError if another one has its id."""
        debate = events[0].debate
        if await self.index.get(tenant, debate) is None:
            return False
        here = await read_events(self.log, tenant, debate)
        if [each.hash for each in here] != [each.hash for each in events]:
            raise _exists_error(debate)
        return True

    async def _write_log(self, tenant: str, events: Sequence[Envelope]) -> None:
        """Append the events as they are. The same again changes nothing."""
        name = log_name(tenant, events[0].debate)
        for batch in _split(events):
            # Named by what it holds, so that an import that broke off can be sent again.
            record = Record(
                batch[0].sequence, f"import-{batch[-1].hash.hex()}", tuple(each.entry for each in batch)
            )
            try:
                await self.log.append(name, record)
            except AppendConflictError:
                raise _exists_error(events[0].debate) from None


def _split(events: Sequence[Envelope]) -> Iterator[Sequence[Envelope]]:
    batch: list[Envelope] = []
    size = 0
    for each in events:
        if batch and (size + len(each.entry) > _BATCH_BYTES or len(batch) == _BATCH):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += len(each.entry)
    yield batch


def _create_record(tenant: str, events: Sequence[Envelope], note: ImportedDebate, now: str) -> DebateRecord:
    """Return the record of a debate in which nothing is left to run. No request id of a client is like its own."""
    spec, created = events[0].message.debate_created.spec, events[0].time
    debate = events[0].debate
    return DebateRecord(
        tenant=tenant,
        debate=debate,
        request_id=f"import/{debate}",
        request_digest="",
        format=spec.format,
        status=COMPLETED,
        open=False,
        owner=None,
        epoch=events[-1].epoch,
        heartbeat=0,
        created=f"{created.isoformat(timespec='microseconds')}/{debate}",
        updated=now,
        question=to_listed_question(spec.question),
        opening="",
        labels=label_texts(spec.labels),
        imported=base64.b64encode(note.SerializeToString()).decode(),
    )


def _exists_error(debate: str) -> ParleyError:
    message = f"another debate {debate} is here, with other events; nothing was changed"
    return ParleyError(grpc.StatusCode.ALREADY_EXISTS, "DEBATE_EXISTS", message, resource=("debate", debate))
