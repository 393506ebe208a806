"""The outbox: a record is written first, together with the mark that its effects are outstanding, then these are applied.

Whatever stops in between is finished by the same call again, or by any replica in the background. So a record has all of its
effects or, once it is forgotten, none.

Two orders matter. The record is durable before its effects begin, so that whoever comes later knows of them. And after its effects
the process looks for a tombstone, which whoever forgets a debate writes first: one of both sees what the other wrote. Nobody waits
for the end of the mark: it ends at the next look, for all records since the last one together. Until then a killed process only
leaves effects to be applied once more. No effect needs another one, so their writes are made together.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from parley.memory.approvals import Approvals
from parley.memory.debate import (
    DEBATES,
    FORGETTING,
    KIND,
    RECORDING,
    debate_of,
    from_document,
    is_forgetting,
)
from parley.memory.effects import Effect
from parley.memory.tombstones import Tombstones
from parley.memory.writing import run_to_common_write, write_together
from parley.runtime.backoff import Backoff
from parley.runtime.clock import Clock
from parley.runtime.errors import ParleyError
from parley.runtime.logs import get_logger
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Document, Documents, StorageError
from parley.storage.scan import scan
from parley.v1.memory_pb2 import PastDebate, RecordDebateRequest

_SECONDS: Final = 5.0
"""Between two looks for what is outstanding."""
_RETRY_BACKOFF: Final = Backoff(first=1.0, maximum=60.0, jitter=0.2)
_PAGE: Final = 50

_logger = get_logger(__name__)


class Outbox:
    """The outstanding effects of all records."""

    def __init__(self, documents: Documents, effects: Sequence[Effect], clock: Clock) -> None:
        self._documents = documents
        self._effects = effects
        self._clock = clock
        self._tombstones = Tombstones(documents, clock)
        self._approvals = Approvals(documents)
        self._applied = set[str]()

    async def finish(self, document: Document, record: RecordDebateRequest | None = None) -> None:
        """Apply the effects of a record; if it is to be forgotten, remove them and delete it. Safe to repeat.

        `record` is what the document holds, if it was just recorded; None: it is read. Raise StorageError or ParleyError if an effect cannot be done now.
        """
        if is_forgetting(document):
            await self._forget(document)
        elif document.key not in self._applied and (record or not await self._forget_if_forgotten(document)):
            await self._apply(document, record)

    async def close(self) -> None:
        """End the marks that are left. If the store fails, the effects are applied once more by the next process."""
        with suppress(StorageError):
            await self._end_applied()

    async def _end_applied(self) -> None:
        """End the marks of the records whose effects this process has applied."""
        applied = list(self._applied)
        await write_together(*map(self._end, applied))
        self._applied.difference_update(applied)

    async def _end(self, key: str) -> None:
        await self._documents.update(DEBATES, key, {"unfinished": None}, {"unfinished": RECORDING})

    async def run(self) -> None:
        """Finish what is outstanding: at once what was left, later what is still outstanding at a second look."""
        pauses = _RETRY_BACKOFF.pauses()
        due = None
        while True:
            due, failed = await self._finish_left(due)
            if failed is None:
                pauses, pause = _RETRY_BACKOFF.pauses(), _SECONDS
            else:
                pause = next(pauses)
                _logger.warning(
                    "effects of records are outstanding", error=str(failed), again_in_seconds=pause
                )
            await self._clock.sleep(pause)

    async def _finish_left(self, due: set[str] | None) -> tuple[set[str], Exception | None]:
        """Finish the outstanding records of these keys, or all. Return what was outstanding, and the last error."""
        seen, failed = set[str](), None
        try:
            await self._end_applied()
            async for document in self._scan_unfinished():
                seen.add(document.key)
                if due is None or document.key in due:  # a call may be working on the others
                    try:
                        await self.finish(document)
                    except (StorageError, ParleyError) as error:
                        failed = error
            await self._remove_late_effects()
        except (StorageError, ParleyError) as error:
            return (due or set()) | seen, error
        return seen, failed

    async def _remove_late_effects(self) -> None:
        """Remove what a replica that was killed has written, or did not delete any more, of debates that are forgotten."""
        for tombstone in await self._tombstones.list_uncleared():
            document = await self._documents.get(DEBATES, tombstone.key)
            if document is None:
                await self._remove_effects_of(tombstone, None)
            else:  # whoever was to forget it was killed
                await self._documents.update(DEBATES, document.key, {"unfinished": FORGETTING})
                await self._forget(document)
            await self._approvals.delete(tombstone.key)
            await self._tombstones.mark_cleared(tombstone)

    async def _scan_unfinished(self) -> AsyncIterator[Document]:
        for mark in (FORGETTING, RECORDING):
            async for document in scan(self._documents, DEBATES, "key", {"unfinished": mark}, page=_PAGE):
                yield document

    async def _apply(self, document: Document, record: RecordDebateRequest | None) -> None:
        tenant, _ = debate_of(document)
        for each in [record] if record else skip_unreadable([document], from_document, KIND):
            try:
                await run_to_common_write(*(partial(effect.apply, tenant, each) for effect in self._effects))
            except (Exception, asyncio.CancelledError):
                with suppress(StorageError, ParleyError):  # what came first is raised
                    await self._forget_if_forgotten(document)
                raise
            if not await self._forget_if_forgotten(document):
                self._applied.add(document.key)

    async def _forget_if_forgotten(self, document: Document) -> bool:
        """Delete a record of a debate that is forgotten meanwhile, and its effects; return whether it is."""
        if not await self._tombstones.has(document.key):
            return False
        await self._documents.update(DEBATES, document.key, {"unfinished": FORGETTING})
        await self._forget(document)
        return True

    async def _forget(self, document: Document) -> None:
        await self._remove_effects(document)
        await self._documents.delete(DEBATES, document.key, {"unfinished": FORGETTING})
        self._applied.discard(document.key)

    async def _remove_effects(self, document: Document) -> None:
        readable = list(skip_unreadable([document], from_document, KIND))
        await self._remove_effects_of(document, readable[0] if readable else None)

    async def _remove_effects_of(self, found: Document, record: RecordDebateRequest | None) -> None:
        """Remove the effects of a record. `found` has the key of its document; `record` is None if it cannot be read."""
        tenant, debate_id = debate_of(found)
        record = record or RecordDebateRequest(debate=PastDebate(debate_id=debate_id))
        for effect in self._effects:
            await effect.remove(tenant, record)
