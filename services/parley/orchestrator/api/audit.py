"""The RPCs about the audit log: protobuf in and out."""

import hashlib
import re
from collections.abc import AsyncGenerator
from typing import Final

from msgspec.structs import astuple

from parley.orchestrator.api.page_tokens import page_token, place_of
from parley.orchestrator.api.requests import read_time
from parley.orchestrator.api.store_trouble import map_store_errors
from parley.orchestrator.audit.parts import AuditLogs
from parley.orchestrator.audit.reading import AuditFilter, Place, list_page, read_stored
from parley.runtime.identity.identity import current_tenant
from parley.runtime.validation import DEBATE_ID, Violations
from parley.v1 import audit_pb2, orchestrator_pb2_grpc

_PLACE: Final = re.compile(r"(?P<part>\d{1,18})/(?P<sequence>\d{1,18})", re.ASCII)
_MAX_SUBJECT: Final = 1024
_MAX_ACTS: Final = 64


class AuditServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for the audit log of the caller's tenant."""

    __slots__ = ()

    audit_logs: AuditLogs

    async def ListAuditEntries(  # noqa: N802
        self, request: audit_pb2.ListAuditEntriesRequest, _context: object
    ) -> audit_pb2.ListAuditEntriesResponse:
        """Return a page of the audit log."""
        violations = Violations()
        size = violations.page_size(request.page_size)
        wanted = _read_filter(violations, request)
        asked = _fingerprint(wanted)
        after = _PLACE.fullmatch(place_of(violations, request.page_token, _PLACE, asked))
        violations.refuse()
        place = Place(int(after["part"]), int(after["sequence"])) if after else None
        with map_store_errors():
            page = await list_page(self.audit_logs, current_tenant(), wanted, place, size)
        following = page.following
        token = page_token(f"{following.part}/{following.sequence}", asked) if following else ""
        return audit_pb2.ListAuditEntriesResponse(entries=page.entries, next_page_token=token)

    async def ReadAuditLog(  # noqa: N802
        self, request: audit_pb2.ReadAuditLogRequest, _context: object
    ) -> AsyncGenerator[audit_pb2.ReadAuditLogResponse, None]:
        """Send the stored bytes of the audit log."""
        violations = Violations()
        violations.check(
            that=request.after_sequence >= 0, field="after_sequence", otherwise="must not be negative"
        )
        violations.refuse()
        with map_store_errors():
            head = await self.audit_logs.get_head(current_tenant())
            if head is None:
                return
            first = audit_pb2.ReadAuditLogResponse(
                previous_hash=head.previous_hash, first_sequence=head.first_sequence
            )
            yield first
            async for entries in read_stored(self.audit_logs, head, request.after_sequence):
                yield audit_pb2.ReadAuditLogResponse(entries=entries)


def _read_filter(violations: Violations, request: audit_pb2.ListAuditEntriesRequest) -> AuditFilter:
    violations.check(
        that=len(request.subject) <= _MAX_SUBJECT,
        field="subject",
        otherwise=f"must be at most {_MAX_SUBJECT} characters",
    )
    violations.check(
        that=not request.debate_id or bool(DEBATE_ID.fullmatch(request.debate_id)),
        field="debate_id",
        otherwise="is no id of a debate",
    )
    known = audit_pb2.AuditAct.values()
    violations.check(
        that=len(request.acts) <= _MAX_ACTS and all(each in known for each in request.acts),
        field="acts",
        otherwise=f"must be at most {_MAX_ACTS} known acts",
    )
    return AuditFilter(
        since=read_time(violations, request, "recorded_from"),
        before=read_time(violations, request, "recorded_before"),
        subject=request.subject,
        debate_id=request.debate_id,
        acts=frozenset(request.acts),
    )


def _fingerprint(wanted: AuditFilter) -> str:
    """Return a name of the filter, for which a token is valid."""
    named = (*astuple(wanted)[:-1], sorted(wanted.acts))
    return hashlib.sha256(repr(named).encode()).hexdigest()[:16]
