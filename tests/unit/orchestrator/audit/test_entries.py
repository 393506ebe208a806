"""Entries of an audit log as they are stored."""

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from parley.orchestrator.audit.entries import open_entry
from parley.orchestrator.log.events import CorruptEventError
from parley.v1.audit_pb2 import AuditEntry


@pytest.mark.parametrize(
    "stored",
    [
        b"\xff",
        AuditEntry(time=Timestamp(nanos=-1)).SerializeToString(),
        AuditEntry(time=Timestamp(seconds=10**12)).SerializeToString(),
    ],
    ids=["no-message", "no-time", "after-9999"],
)
def test_an_entry_that_cannot_be_read_or_has_no_time_is_damaged(stored: bytes) -> None:
    with pytest.raises(CorruptEventError, match="a stored entry of the audit log is damaged"):
        open_entry(stored)
