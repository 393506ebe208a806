"""Audit logs of a tenant: written, and read back."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

from parley.orchestrator.audit.entries import open_entry
from parley.orchestrator.audit.parts import AuditLogs
from parley.orchestrator.audit.reading import read_stored
from parley.orchestrator.audit.writer import AuditWriter, WaitingEntry
from parley.receipts.chain import follows
from parley.runtime.clock import Clock
from parley.runtime.tasks import background_task
from parley.v1.audit_pb2 import (
    AUDIT_ACT_CREATE_DEBATE,
    AUDIT_ACT_END_PART,
    AUDIT_OUTCOME_STARTED,
    AuditEntry,
)

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


TENANT = "acme"


@asynccontextmanager
async def open_writer(logs: AuditLogs, clock: Clock) -> AsyncIterator[AuditWriter]:
    made = AuditWriter(logs, clock)
    async with background_task("recording acts", made.run()):
        yield made


def make_entry(subject: str = "ann", tenant: str = TENANT, **fields: object) -> WaitingEntry:
    made = AuditEntry(
        tenant=tenant, subject=subject, act=AUDIT_ACT_CREATE_DEBATE, outcome=AUDIT_OUTCOME_STARTED
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return WaitingEntry(made)


async def read_chain(logs: AuditLogs, tenant: str = TENANT) -> list[AuditEntry]:
    """All entries that are kept, each of which follows from the one before it."""
    head = await logs.get_head(tenant)
    assert head is not None
    entries, before, sequence = [], head.previous_hash, head.first_sequence
    async with aclosing(read_stored(logs, head, 0)) as found:
        async for some in found:
            for stored in some:
                opened = open_entry(stored)
                assert follows(stored, before)
                assert opened.sequence == sequence
                entries.append(opened)
                before, sequence = opened.hash, sequence + 1
    return entries


def list_subjects(entries: Sequence[AuditEntry]) -> list[str]:
    return [each.subject for each in entries if each.act != AUDIT_ACT_END_PART]
