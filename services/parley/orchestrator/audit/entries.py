"""Entries of the audit log: their stored bytes, chained as the events of a debate are."""

from datetime import datetime

from google.protobuf.message import DecodeError

from parley.orchestrator.log.events import CorruptEventError
from parley.orchestrator.model.times import check_time, time_of, timestamp
from parley.receipts.chain import HASH_FIELD, chain_hash
from parley.v1.audit_pb2 import AUDIT_ACT_END_PART, AUDIT_OUTCOME_DONE, AuditEntry


def seal_entry(entry: AuditEntry, *, sequence: int, time: datetime, before: bytes) -> bytes:
    """Set the place, the time and the hash of an entry that follows the one with the hash `before`. Return its stored bytes."""
    entry.sequence = sequence
    entry.time.CopyFrom(timestamp(time))
    entry.ClearField("hash")  # of an earlier place
    body = entry.SerializeToString()
    entry.hash = chain_hash(before, body)
    return body + HASH_FIELD + entry.hash


def create_end(tenant: str) -> AuditEntry:
    """Return the entry that ends a part, not sealed yet."""
    return AuditEntry(tenant=tenant, act=AUDIT_ACT_END_PART, outcome=AUDIT_OUTCOME_DONE)


def open_entry(stored: bytes) -> AuditEntry:
    """Return an entry. Its place in the chain is not checked: whoever reads the log does that.

    Raises:
        CorruptEventError: the bytes are no entry.
    """
    try:
        entry = AuditEntry.FromString(stored)
        check_time(entry.time)
    except (DecodeError, ValueError) as error:  # ValueError: an invalid time
        raise CorruptEventError(f"a stored entry of the audit log is damaged: {error}") from error
    return entry


def recorded_at(entry: AuditEntry) -> datetime:
    """Return when an entry was recorded (UTC)."""
    return time_of(entry.time)
