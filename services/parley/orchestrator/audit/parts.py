"""The stored audit logs: the parts of each tenant's log, and the document that says which of them are kept.

The last entry of a part says so, and all writers then go on in the next part: of two writers at one place one gets an error, so the
chain never forks. A part ends when it has many entries or is a day old, or when all of it is old enough to be removed. Whole parts are
removed; the document then has the hash before the first entry that is kept, so that the chain is verified from there.
"""

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from parley.orchestrator.audit.entries import create_end, open_entry, recorded_at, seal_entry
from parley.receipts.chain import GENESIS
from parley.storage.ports import (
    AppendConflictError,
    AppendGapError,
    Collection,
    Document,
    Documents,
    DuplicateError,
    Index,
    Log,
    Record,
    StorageError,
)
from parley.storage.scan import scan
from parley.v1.audit_pb2 import AUDIT_ACT_END_PART, AuditEntry

AUDIT_LOGS: Final = Collection("audit_logs", (Index(("tenant",)),))
MAX_ENTRIES: Final = 2000
"""Entries of a part, after which it ends."""
MAX_AGE: Final = timedelta(days=1)
"""The age of a part's first entry after which it ends: so much longer than it should an entry may be kept."""
_PAGE: Final = 1000


class LogHead(Struct, frozen=True):
    """What is kept of a tenant's log.

    Attributes:
        first_part: The number of the first part that is kept.
        first_sequence: The sequence of its first entry.
        previous_hash: The hash of the entry before that one.
        last_part: A part that was begun; there may be later ones.
        removed_parts: Up to this number, parts are surely removed.
    """

    tenant: str
    first_part: int = 1
    first_sequence: int = 1
    previous_hash: bytes = GENESIS
    last_part: int = 1
    removed_parts: int = 0


class LogEnd(Struct, frozen=True):
    """Where a tenant's log ends.

    Attributes:
        part: The part that the next entry goes into.
        count: The entries that this part has.
        began: When its first entry was recorded; None if it has none.
        sequence: The sequence of the last entry.
        hash: The hash of the last entry.
        time: When the last entry was recorded; None if there is none.
    """

    part: int
    count: int
    began: datetime | None
    sequence: int
    hash: bytes
    time: datetime | None = None

    def after(self, entry: AuditEntry) -> "LogEnd":
        """Return the end of the log with another entry."""
        time, begins = recorded_at(entry), self.count == 0
        following = LogEnd(
            self.part, self.count + 1, time if begins else self.began, entry.sequence, entry.hash, time
        )
        if entry.act == AUDIT_ACT_END_PART:
            return replace(following, part=self.part + 1, count=0, began=None)
        return following


class AuditLogs:
    """The audit logs of all tenants in one store."""

    def __init__(self, log: Log, documents: Documents) -> None:
        """Use a store whose collection AUDIT_LOGS is prepared."""
        self._log = log
        self._documents = documents

    async def get_head(self, tenant: str) -> LogHead | None:
        """Return what is kept of a tenant's log; None if it has none."""
        found = await self._documents.get(AUDIT_LOGS, tenant)
        return _head(found) if found else None

    async def find_end(self, tenant: str) -> LogEnd:
        """Return where a tenant's log ends. Create the log if there is none."""
        while True:
            end = await self._find_end(tenant)
            # A part that is empty may have been removed after its head was read: what is appended to it, nobody would read.
            if end.count or ((head := await self.get_head(tenant)) and end.part >= head.first_part):
                return end

    async def _find_end(self, tenant: str) -> LogEnd:
        head = await self.get_head(tenant)
        if head is None:
            head = LogHead(tenant)
            with suppress(DuplicateError):  # another replica was faster
                await self._documents.insert(AUDIT_LOGS, tenant, _fields(head))
        # A part may have been begun, and have no entry yet: then the one before has the last entry.
        part = max(head.last_part - 1, head.first_part)
        return await self.advance(tenant, LogEnd(part, 0, None, head.first_sequence - 1, head.previous_hash))

    async def advance(self, tenant: str, end: LogEnd) -> LogEnd:
        """Return where a tenant's log ends that ended at `end` before."""
        while True:
            before = end
            for record in await self._log.read(_name(tenant, end.part), end.count, _PAGE):
                for place, stored in enumerate(record.entries, start=record.first):
                    if place == end.count + 1 and end.part == before.part:
                        end = end.after(open_entry(stored))
            if end == before:
                return end

    async def append(self, tenant: str, end: LogEnd, append_id: str, entries: Sequence[bytes]) -> None:
        """Append the stored bytes of entries at the end of a log. Raise as `Log.append`."""
        await self._log.append(_name(tenant, end.part), Record(end.count + 1, append_id, tuple(entries)))

    async def note_part(self, tenant: str, part: int) -> None:
        """Note that a part is begun. It is only where a reader begins to look, so a failure does no harm."""
        with suppress(StorageError):
            await self._documents.update(AUDIT_LOGS, tenant, {"last_part": part})

    async def read_part(self, tenant: str, part: int) -> list[bytes]:
        """Return the stored bytes of the entries of a part, in order; none if there is no such part."""
        stored: list[bytes] = []
        while records := await self._log.read(_name(tenant, part), len(stored), _PAGE):
            stored += [entry for record in records for entry in record.entries]
        return stored

    async def find_last_part(self, head: LogHead) -> int:
        """Return the number of the last part of a log that has entries."""
        part = max(head.last_part, head.first_part)
        while await self._log.read(_name(head.tenant, part + 1), 0, 1):
            part += 1
        return part

    async def list_heads(self) -> AsyncIterator[LogHead]:
        """Yield what is kept of the logs of all tenants."""
        async for each in scan(self._documents, AUDIT_LOGS, "tenant", page=_PAGE):
            yield _head(each)

    async def remove_before(self, head: LogHead, before: datetime, now: datetime) -> LogHead:
        """Remove the parts of a log whose acts were all recorded before a time. Return what is kept."""
        while rest := await self._find_rest(head, before, now):
            # First the note: what is read from now on begins behind what is removed.
            here = {"first_part": head.first_part}
            if not await self._documents.update(AUDIT_LOGS, head.tenant, _kept_fields(rest), here):
                return await self.get_head(head.tenant) or head  # another replica removes them
            head = rest
        for part in range(head.removed_parts + 1, head.first_part):
            await self._log.delete(_name(head.tenant, part))
            head = replace(head, removed_parts=part)
            await self._documents.update(AUDIT_LOGS, head.tenant, {"removed_parts": part})
        return head

    async def _find_rest(self, head: LogHead, before: datetime, now: datetime) -> LogHead | None:
        """Return what is kept without the first part; None if that has a later act, or another replica has removed it."""
        begin = await self._log.read(_name(head.tenant, head.first_part), 0, 1)
        if not begin or recorded_at(open_entry(begin[0].entries[0])) >= before:
            return None
        part = await self.read_part(head.tenant, head.first_part)
        last = open_entry(part[-1]) if part else None
        if last is None:
            return None
        if last.act != AUDIT_ACT_END_PART:  # its tenant has done nothing since
            last = await self._end_part(head, len(part), last, now) if recorded_at(last) < before else None
        elif len(part) > 1 and recorded_at(open_entry(part[-2])) >= before:
            last = None
        return last and replace(
            head,
            first_part=head.first_part + 1,
            first_sequence=last.sequence + 1,
            previous_hash=last.hash,
        )

    async def _end_part(
        self, head: LogHead, count: int, last: AuditEntry, now: datetime
    ) -> AuditEntry | None:
        """End the first part after its last entry. Return the entry that says so; None if another replica has written there or removed it meanwhile."""
        end, time = create_end(head.tenant), max(now, recorded_at(last))
        stored = seal_entry(end, sequence=last.sequence + 1, time=time, before=last.hash)
        record = Record(count + 1, uuid.uuid4().hex, (stored,))
        try:
            await self._log.append(_name(head.tenant, head.first_part), record)
        except (AppendConflictError, AppendGapError):
            return None
        return end


def _name(tenant: str, part: int) -> str:
    """Return the name of a part's log. No debate has it: names of debates have no slash."""
    return f"{tenant}/audit/{part}"


def _head(document: Document) -> LogHead:
    fields = document.fields
    return LogHead(
        tenant=document.key,
        first_part=int(str(fields["first_part"])),
        first_sequence=int(str(fields["first_sequence"])),
        previous_hash=bytes.fromhex(str(fields["previous_hash"])),
        last_part=int(str(fields["last_part"])),
        removed_parts=int(str(fields["removed_parts"])),
    )


def _kept_fields(head: LogHead) -> dict[str, str | int]:
    return {
        "first_part": head.first_part,
        "first_sequence": head.first_sequence,
        "previous_hash": head.previous_hash.hex(),
    }


def _fields(head: LogHead) -> dict[str, str | int]:
    return {
        "tenant": head.tenant,
        "last_part": head.last_part,
        "removed_parts": head.removed_parts,
        **_kept_fields(head),
    }
