"""The audit log, as a client reads and verifies it."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Final

from msgspec import Struct

from parley.client.connection import OrchestratorConnection
from parley.client.times import to_timestamp
from parley.receipts.chain import GENESIS, follows
from parley.runtime.watching import Stream, read_with_reconnects
from parley.v1 import audit_pb2

_PAGE: Final = 200


class VerifiedAuditLog(Struct, frozen=True):
    """What became of the verification of an audit log.

    Attributes:
        first: The sequence of the first entry that is kept.
        last: The sequence of the last entry that follows from all before it; one less than `first` if there is none.
        hash: The hash of that entry. Whoever has noted it before can see later whether the log still has it.
        problem: Where the chain breaks, for people; empty: nowhere.
        noted: The sequence of the entry with the hash that was asked for; 0: the log has none.
    """

    first: int
    last: int
    hash: bytes
    problem: str = ""
    noted: int = 0


class AuditClient(OrchestratorConnection):
    """The audit log of one tenant at an orchestrator."""

    def list_audit_entries(
        self,
        *,
        since: datetime | None = None,
        before: datetime | None = None,
        subject: str = "",
        debate_id: str = "",
        acts: Sequence[audit_pb2.AuditAct.ValueType] = (),
        page_size: int = _PAGE,
    ) -> AsyncGenerator[audit_pb2.AuditEntry, None]:
        """Yield the entries of the tenant's audit log, newest first; pages are fetched as they are needed.

        Those recorded `since` a time or later and `before` another, of a subject, about a debate, and of some acts; or all. Times without
        a zone are UTC.
        """
        request = audit_pb2.ListAuditEntriesRequest(
            page_size=page_size,
            recorded_from=to_timestamp(since),
            recorded_before=to_timestamp(before),
            subject=subject,
            debate_id=debate_id,
            acts=acts,
        )
        return self._list(self._stub.ListAuditEntries, request, lambda page: page.entries)

    def read_audit_log(self) -> AsyncGenerator[audit_pb2.ReadAuditLogResponse, None]:
        """Yield the stored bytes of the tenant's audit log, oldest first. Broken streams are continued."""

        def open_stream(last: int) -> Stream[audit_pb2.ReadAuditLogResponse]:
            request = audit_pb2.ReadAuditLogRequest(after_sequence=last)
            return self._stub.ReadAuditLog(request, metadata=self._metadata)

        return read_with_reconnects(open_stream, _LogReader(), self._patience)

    async def verify_audit_log(self, noted_hash: bytes = b"") -> VerifiedAuditLog:
        """Read the whole audit log, and return whether each entry follows from the one before it.

        Also find the entry with `noted_hash`: an end of the log that was noted earlier, and must still be in it.
        """
        first, last, before, noted = 1, 0, GENESIS, 0
        async with aclosing(self.read_audit_log()) as parts:
            async for part in parts:
                if part.first_sequence and not last:
                    first, last, before = part.first_sequence, part.first_sequence - 1, part.previous_hash
                for stored in part.entries:
                    problem = _find_problem(stored, last + 1, before)
                    if problem:
                        return VerifiedAuditLog(first, last, before, problem, noted)
                    last, before = last + 1, stored[-len(GENESIS) :]
                    noted = last if before == noted_hash else noted
        return VerifiedAuditLog(first, last, before, noted=noted)


class _LogReader:
    """Reads parts of an audit log. They have no gaps, so that the count is the sequence at which to continue."""

    def __init__(self) -> None:
        self.last = 0

    def read(self, response: audit_pb2.ReadAuditLogResponse) -> Iterator[audit_pb2.ReadAuditLogResponse]:
        self.last = (self.last or response.first_sequence - 1) + len(response.entries)
        yield response


def _find_problem(stored: bytes, sequence: int, before: bytes) -> str:
    """Return what is wrong with the entry that should have this sequence, for people; empty: nothing."""
    if not follows(stored, before):
        return f"entry {sequence} is not as it was recorded, or does not follow from entry {sequence - 1}"
    found = audit_pb2.AuditEntry.FromString(stored).sequence
    return "" if found == sequence else f"entry {found} stands where entry {sequence} should be"
