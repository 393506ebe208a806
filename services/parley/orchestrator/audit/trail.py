"""What is recorded of the calls of a service: which act each one is, who calls, and how it ends."""

import time
from collections import OrderedDict
from functools import cache
from typing import Final

from google.protobuf import descriptor_pool
from msgspec import Struct

from parley.orchestrator.audit.facts import CallFacts, facts_of
from parley.orchestrator.audit.writer import AuditWriter, WaitingEntry
from parley.orchestrator.log.events import CorruptEventError
from parley.runtime import audit
from parley.runtime.errors import ParleyError, internal, unavailable
from parley.runtime.identity.guard import RefusedCallerError
from parley.runtime.identity.identity import Identity, current_identity, is_tenant
from parley.storage.service_errors import map_store_errors
from parley.v1.audit_pb2 import (
    AUDIT_ACT_NONE,
    AUDIT_OUTCOME_CUT_OFF,
    AUDIT_OUTCOME_DONE,
    AUDIT_OUTCOME_FAILED,
    AUDIT_OUTCOME_REFUSED,
    AUDIT_OUTCOME_STARTED,
    AuditAct,
    AuditEntry,
    AuditOutcome,
    act,
    changes,
)

_REPEAT_SECONDS: Final = 60.0
_MAX_READS: Final = 10_000


class _Method(Struct, frozen=True):
    """What the contract says of an RPC."""

    name: str
    act: AuditAct.ValueType
    changes: bool
    is_stream: bool


@cache
def _describe(method: str) -> _Method:
    found = descriptor_pool.Default().FindMethodByName(method.replace("/", "."))
    kind: AuditAct.ValueType = found.GetOptions().Extensions[act]
    value = AuditAct.DESCRIPTOR.values_by_number[kind]
    return _Method(
        found.name, kind, changes=value.GetOptions().Extensions[changes], is_stream=found.server_streaming
    )


class AuditTrail:
    """Records the calls of a service in the audit logs of their tenants."""

    def __init__(self, writer: AuditWriter) -> None:
        self._writer = writer
        self._reads: OrderedDict[tuple[str, ...], float] = OrderedDict()
        self._refusals = audit.PeerLines()

    def record_call(self, method: str) -> "_Call":
        """Return the act of a call, as the server's interceptor takes it."""
        return _Call(self, self._writer, _describe(method))

    def is_repeated(self, *read: str) -> bool:
        """Return whether the same was read by the same caller within the last minute, and note that it is read now otherwise."""
        now = time.monotonic()
        if now - self._reads.get(read, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return True
        self._reads[read] = now
        self._reads.move_to_end(read)
        if len(self._reads) > _MAX_READS:
            self._reads.popitem(last=False)
        return False

    def take_refusal(self, caller: str) -> int | None:
        """Return how many refusals of a caller were left out before this one, or None if this one must be left out too."""
        return self._refusals.take(caller)


class _Call:
    """The act of one call."""

    __slots__ = ("_facts", "_is_ended", "_method", "_start", "_trail", "_writer")

    def __init__(self, trail: AuditTrail, writer: AuditWriter, method: _Method) -> None:
        self._trail = trail
        self._writer = writer
        self._method = method
        self._facts = CallFacts()
        self._start: WaitingEntry | None = None
        self._is_ended = False

    async def start(self, request: object) -> None:
        """See `Act.start`."""
        self._facts = facts_of(request)
        caller = current_identity()
        if not self._is_recorded(caller):
            return
        if not self._writer.has_room(caller.tenant):
            raise unavailable(
                "STORE_UNAVAILABLE", "too many acts wait to be recorded; try again", retry_after=1.0
            )
        if self._method.changes:
            self._start = WaitingEntry(self._entry(caller, AUDIT_OUTCOME_STARTED))
            try:
                with map_store_errors("the audit log"):
                    await self._writer.write(self._start)
            except CorruptEventError as corrupt:
                raise internal(str(corrupt), reason="LOG_DAMAGED") from corrupt

    def finish(self, response: object = None) -> None:
        """See `Act.finish`."""
        caller = current_identity()
        if self._is_ended or not self._is_recorded(caller):
            return
        self._is_ended = True
        self._facts = self._facts.with_response(response)
        entry = self._entry(caller, AUDIT_OUTCOME_DONE)
        if not self._is_repeated(entry):
            self._writer.enqueue(WaitingEntry(entry, self._start))

    def fail(self, error: ParleyError | None) -> None:
        """See `Act.fail`."""
        if self._is_ended:
            return
        self._is_ended = True
        is_refused = error is not None and audit.is_refusal(error)
        if self._start is not None:
            outcome = AUDIT_OUTCOME_REFUSED if is_refused else AUDIT_OUTCOME_FAILED
            entry = self._entry(current_identity(), outcome if error else AUDIT_OUTCOME_CUT_OFF, error)
            self._writer.enqueue(WaitingEntry(entry, self._start))
        elif is_refused:
            caller = error.identity if isinstance(error, RefusedCallerError) else current_identity()
            self._record_refusal(caller, error)

    def _record_refusal(self, caller: Identity, error: ParleyError | None) -> None:
        """Record a refused call of a caller who is known: others have no tenant. A caller has some such entries a minute."""
        if not caller.proven or not is_tenant(caller.tenant) or not self._writer.has_room(caller.tenant):
            return
        left_out = self._trail.take_refusal(f"{caller.tenant}/{caller.subject}")
        if left_out is not None:
            entry = self._entry(caller, AUDIT_OUTCOME_REFUSED, error)
            entry.left_out = left_out
            self._writer.enqueue(WaitingEntry(entry))

    def _is_recorded(self, caller: Identity) -> bool:
        return self._method.act != AUDIT_ACT_NONE and is_tenant(caller.tenant)

    def _is_repeated(self, entry: AuditEntry) -> bool:
        """Return whether a read is one that the same caller has just done. A change or an opened stream never is."""
        if self._method.changes or self._method.is_stream:
            return False
        about = entry.method, entry.debate_id, entry.target
        return self._trail.is_repeated(entry.tenant, entry.subject, entry.peer, *about)

    def _entry(
        self, caller: Identity, outcome: AuditOutcome.ValueType, error: ParleyError | None = None
    ) -> AuditEntry:
        return AuditEntry(
            tenant=caller.tenant,
            subject=caller.subject,
            act=self._method.act,
            outcome=outcome,
            method=self._method.name,
            reason=error.reason if error else "",
            debate_id=self._facts.debate_id,
            target=self._facts.target,
            request_id=self._facts.request_id,
            peer=audit.peer_address(),
        )
