"""The audit log as it is read: pages of a filter, newest first, and all stored bytes, oldest first."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from parley.orchestrator.audit.entries import open_entry, recorded_at
from parley.orchestrator.audit.parts import AuditLogs, LogHead
from parley.v1.audit_pb2 import AUDIT_ACT_END_PART, AuditAct, AuditEntry

_MAX_PARTS: Final = 20
"""Parts that are searched for one page."""


class AuditFilter(Struct, frozen=True):
    """Which entries are listed; without a value, all.

    Attributes:
        acts: None of them: all but END_PART.
    """

    since: datetime | None = None
    before: datetime | None = None
    subject: str = ""
    debate_id: str = ""
    acts: frozenset[AuditAct.ValueType] = frozenset()

    def matches(self, entry: AuditEntry) -> bool:
        """Return whether an entry is listed."""
        return (
            (entry.act in self.acts if self.acts else entry.act != AUDIT_ACT_END_PART)
            and self.subject in ("", entry.subject)
            and self.debate_id in ("", entry.debate_id)
            and (self.before is None or recorded_at(entry) < self.before)
        )

    def ends_at(self, entry: AuditEntry) -> bool:
        """Return whether neither an entry nor any before it is listed."""
        return self.since is not None and recorded_at(entry) < self.since


class Place(Struct, frozen=True):
    """A place in a log: what comes next was recorded before this sequence, in this part or an earlier one."""

    part: int
    sequence: int


class AuditPage(Struct, frozen=True):
    """A page of entries, newest first. `following`: where the next page begins; None: this was the last one."""

    entries: Sequence[AuditEntry]
    following: Place | None


async def list_page(
    logs: AuditLogs, tenant: str, wanted: AuditFilter, after: Place | None, size: int
) -> AuditPage:
    """Return the next entries of a log, newest first. Few parts are searched: a page may be short though others follow.

    Raises:
        CorruptEventError: a stored entry cannot be read.
    """
    head = await logs.get_head(tenant)
    if head is None:
        return AuditPage((), None)
    if after is None:
        after = Place(await logs.find_last_part(head), 2**63 - 1)
    found: list[AuditEntry] = []
    part, sequence = after.part, after.sequence
    for part in range(after.part, max(head.first_part, after.part - _MAX_PARTS + 1) - 1, -1):
        for entry in map(open_entry, reversed(await logs.read_part(tenant, part))):
            if entry.sequence >= after.sequence:
                continue
            if wanted.ends_at(entry):
                return AuditPage(found, None)
            if wanted.matches(entry):
                if len(found) == size:
                    return AuditPage(found, Place(part, found[-1].sequence))
                found.append(entry)
            sequence = entry.sequence
    return AuditPage(found, Place(part - 1, sequence) if part > head.first_part else None)


async def read_stored(logs: AuditLogs, head: LogHead, after: int) -> AsyncGenerator[Sequence[bytes], None]:
    """Yield the stored bytes of the entries after a sequence, in order, some at a time."""
    part = head.first_part
    while stored := await logs.read_part(head.tenant, part):
        first = open_entry(stored[0]).sequence
        if following := stored[max(after + 1 - first, 0) :]:
            yield following
        part += 1
