"""Writes the audit logs: entries of many callers become one record, and several replicas may write to one log.

A caller that must not act unrecorded waits until its entry is durable, and gets the store's error if it is not. All other entries are
written within a second, and wait for a store that is away; there is a bound on how many wait.
"""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from parley.orchestrator.audit.entries import create_end, seal_entry
from parley.orchestrator.audit.parts import MAX_AGE, MAX_ENTRIES, AuditLogs, LogEnd
from parley.orchestrator.log.events import CorruptEventError
from parley.runtime.backoff import Backoff
from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger
from parley.storage.ports import AppendConflictError, AppendGapError, StorageError, StoreUnavailableError
from parley.v1.audit_pb2 import AuditEntry

_WRITE_SECONDS: Final = 1.0
"""How often entries are written that nobody waits for."""
_BATCH: Final = 256
_MAX_WAITING: Final = 10_000
"""Entries of all tenants that wait; of one tenant half of them."""
_MAX_ENDS: Final = 4096
"""Logs whose end is remembered."""
_REMEMBERED_FOR: Final = timedelta(hours=1)
"""How long an end is remembered: other replicas may have gone on since, and removed the part that it is in. A removed part begins anew
with whatever is appended to it, and nobody would read that."""
_MAX_GAPS: Final = 3
"""How often in a row the part may be gone that an end was found in, before the callers get an error."""
_BACKOFF: Final = Backoff(first=0.05, maximum=2.0)

_logger = get_logger(__name__)


class WaitingEntry(Struct, eq=False):
    """An entry that is not written yet.

    Attributes:
        start: The entry that says that the act started whose end this one says.
        written: Resolved when it is durable; None if nobody waits for it.
    """

    entry: AuditEntry
    start: "WaitingEntry | None" = None
    written: asyncio.Future[None] | None = None

    @property
    def tenant(self) -> str:
        """The tenant whose log it goes into."""
        return self.entry.tenant


class AuditWriter:
    """Writes the audit logs of all tenants. `run` must be running."""

    def __init__(self, logs: AuditLogs, clock: Clock) -> None:
        self._logs = logs
        self._clock = clock
        self._ends: dict[str, LogEnd] = {}
        self._shared: set[str] = set()
        """Tenants in whose logs another replica wrote since this one had last."""
        self._waiting: defaultdict[str, list[WaitingEntry]] = defaultdict(list)
        self._count = 0
        self._due: set[str] = set()
        self._writing: set[str] = set()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()

    def has_room(self, tenant: str) -> bool:
        """Return whether another entry of a tenant may wait."""
        return self._count < _MAX_WAITING and len(self._waiting.get(tenant, ())) < _MAX_WAITING // 2

    async def write(self, entry: WaitingEntry) -> None:
        """Write an entry and wait until it is durable.

        Raises:
            StorageError: the store is unavailable; the entry is written later.
            CorruptEventError: the log is damaged at its end.
        """
        entry.written = asyncio.get_running_loop().create_future()
        self.enqueue(entry)
        self._due.add(entry.tenant)
        self._wake.set()
        await entry.written

    def enqueue(self, entry: WaitingEntry) -> None:
        """Write an entry with the next ones."""
        self._waiting[entry.tenant].append(entry)
        self._count += 1

    async def run(self) -> None:
        """Write entries, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write_now_and_then())
            while True:
                await self._wake.wait()
                self._wake.clear()
                for tenant in self._due - self._writing:
                    self._due.discard(tenant)
                    self._writing.add(tenant)
                    group.create_task(self._write(tenant))

    async def flush(self) -> None:
        """Wait until all entries are written. `run` must be running."""
        while self._waiting or self._writing:
            self._idle.clear()
            self._due |= self._waiting.keys()
            self._wake.set()
            await self._idle.wait()

    async def _write_now_and_then(self) -> None:
        while True:
            await self._clock.sleep(_WRITE_SECONDS)
            if self._waiting:
                self._due |= self._waiting.keys()
                self._wake.set()

    async def _write(self, tenant: str) -> None:
        """Write all entries of a tenant that wait."""
        try:
            while waiting := self._waiting.pop(tenant, []):
                for start in range(0, len(waiting), _BATCH):
                    batch = waiting[start : start + _BATCH]
                    await self._write_batch(tenant, batch)
                    self._count -= len(batch)
        finally:
            self._writing.discard(tenant)
            self._wake.set()  # more may be due by now
            self._idle.set()

    async def _write_batch(self, tenant: str, batch: Sequence[WaitingEntry]) -> None:
        """Write entries as one record, however often the store fails meanwhile."""
        pauses = _BACKOFF.pauses()
        # What is sealed behind an old end is in vain: a conflict takes six operations of the store, reading on first takes three.
        end, is_current, record = self._recall_end(tenant), tenant not in self._shared, None
        gaps = 0
        while True:
            try:
                if record is None:
                    end = await self._find_end(tenant, end, is_current=is_current)
                    record, is_current = _seal(batch, end, self._clock.now()), False
                await self._logs.append(tenant, record.end, record.append_id, record.entries)
            except AppendConflictError:
                record = None  # another replica has written here: its entries come first
                continue
            except StorageError as error:
                if isinstance(error, AppendGapError) and gaps < _MAX_GAPS:
                    end, record, gaps = None, None, gaps + 1  # its part was removed meanwhile
                    continue
                # Whether it was stored is not known: the same record is sent again. Another fault may be one of what is known of the log.
                if not isinstance(error, StoreUnavailableError):
                    end = record = None
                self._refuse(tenant, batch, error)
            except CorruptEventError as error:
                end = record = None
                self._refuse(tenant, batch, error)
            else:
                await self._finish(tenant, batch, record)
                return
            await self._clock.sleep(next(pauses))

    def _recall_end(self, tenant: str) -> LogEnd | None:
        end = self._ends.pop(tenant, None)
        is_old = end is None or end.time is None or self._clock.now() - end.time > _REMEMBERED_FOR
        return None if is_old else end

    async def _find_end(self, tenant: str, known: LogEnd | None, *, is_current: bool) -> LogEnd:
        if known is None:
            return await self._logs.find_end(tenant)
        if is_current:
            return known
        end = await self._logs.advance(tenant, known)
        if end == known:
            self._shared.discard(tenant)
        else:
            self._shared.add(tenant)
        return end

    def _refuse(self, tenant: str, batch: Sequence[WaitingEntry], error: Exception) -> None:
        """Raise an error for the callers that wait for their entries."""
        _logger.warning("acts cannot be recorded; trying again", tenant=tenant, error=str(error))
        for each in (*batch, *self._waiting.get(tenant, ())):
            if each.written is not None and not each.written.done():
                each.written.set_exception(error)

    async def _finish(self, tenant: str, batch: Sequence[WaitingEntry], record: "_SealedRecord") -> None:
        if len(self._ends) >= _MAX_ENDS:
            self._ends.clear()  # they are found again
            self._shared.clear()
        self._ends[tenant] = record.following
        for each in batch:
            if each.written is not None and not each.written.done():
                each.written.set_result(None)
        if record.following.part != record.end.part:
            await self._logs.note_part(tenant, record.following.part)


class _SealedRecord(Struct, frozen=True):
    """Entries as they are appended at the end of a log, and the end after them."""

    end: LogEnd
    append_id: str
    entries: tuple[bytes, ...]
    following: LogEnd


def _seal(batch: Sequence[WaitingEntry], end: LogEnd, now: datetime) -> _SealedRecord:
    stored, following = [], end
    time = now if end.time is None else max(now, end.time)
    for each in batch:
        if each.start is not None:
            each.entry.started_sequence = each.start.entry.sequence
        stored.append(
            seal_entry(each.entry, sequence=following.sequence + 1, time=time, before=following.hash)
        )
        following = following.after(each.entry)
    if following.count >= MAX_ENTRIES or (following.began is not None and time - following.began >= MAX_AGE):
        last = create_end(batch[0].entry.tenant)
        stored.append(seal_entry(last, sequence=following.sequence + 1, time=time, before=following.hash))
        following = following.after(last)
    return _SealedRecord(end, uuid.uuid4().hex, tuple(stored), following)
