"""OrchestratorService: protobuf in and out."""

import base64
import binascii
import contextlib
import hashlib
from collections.abc import AsyncIterator, Iterator
from datetime import datetime

import grpc

from parley.orchestrator import report, roster, state
from parley.orchestrator.accepting import Accepting
from parley.orchestrator.deltas import Delta, Deltas
from parley.orchestrator.envelope import Envelope
from parley.orchestrator.events import CorruptEventError, Intervened
from parley.orchestrator.ids import DEBATE_ID
from parley.orchestrator.journal import log_name, read_events
from parley.orchestrator.requests import Violations, check_id, check_request_id, spec_of
from parley.orchestrator.rows import Rows
from parley.orchestrator.translation import debate_to_proto, event_to_proto, status_from_proto, summary
from parley.orchestrator.watching import Watching, watch
from parley.runtime.draining import Draining
from parley.runtime.errors import (
    FieldViolation,
    ParleyError,
    internal,
    invalid_argument,
    not_found,
    unavailable,
)
from parley.runtime.logs import labels
from parley.storage.ports import Log, StorageError
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc

__all__ = ["OrchestratorServicer"]

_PAGE = 50
_MOST_PAGE = 200
_MOST_GUIDANCE_BYTES = 8 * 1024
_MOST_REASON = 1000


class OrchestratorServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for debates."""

    def __init__(
        self,
        *,
        log: Log,
        rows: Rows,
        accepting: Accepting,
        gateway: grpc.aio.Channel,
        deltas: Deltas,
        draining: Draining,
        heartbeat_seconds: float,
    ) -> None:
        """Stand on the replica's parts."""
        self._log = log
        self._rows = rows
        self._accepting = accepting
        self._gateway = gateway
        self._deltas = deltas
        self._draining = draining
        self._heartbeat_seconds = heartbeat_seconds

    async def CreateDebate(  # noqa: N802
        self,
        request: orchestrator_pb2.CreateDebateRequest,
        _context: object,
    ) -> orchestrator_pb2.CreateDebateResponse:
        """Accept a debate."""
        if self._draining.is_set():
            raise self._draining.error()
        spec = spec_of(request, await roster.ask_roster(self._gateway))
        with _store():
            debate, existed = await self._accepting.debate(
                _tenant(), request.request_id, _digest(request), spec
            )
        return orchestrator_pb2.CreateDebateResponse(debate_id=debate, existed=existed)

    async def GetDebate(  # noqa: N802
        self,
        request: orchestrator_pb2.GetDebateRequest,
        _context: object,
    ) -> orchestrator_pb2.GetDebateResponse:
        """Return a debate."""
        debate = check_id("debate_id", request.debate_id)
        folded = state.fold(await self._events(debate))
        return orchestrator_pb2.GetDebateResponse(debate=debate_to_proto(folded))

    async def ListDebates(  # noqa: N802
        self,
        request: orchestrator_pb2.ListDebatesRequest,
        _context: object,
    ) -> orchestrator_pb2.ListDebatesResponse:
        """Return a page of debates."""
        before, size, statuses = _page(request)
        with _store():
            rows = await self._rows.page(_tenant(), statuses, before, size + 1)
        token = _token(rows[size - 1].created) if len(rows) > size else ""
        debates = [summary(row) for row in rows[:size]]
        return orchestrator_pb2.ListDebatesResponse(debates=debates, next_page_token=token)

    async def WatchDebate(  # noqa: N802
        self,
        request: orchestrator_pb2.WatchDebateRequest,
        _context: object,
    ) -> AsyncIterator[orchestrator_pb2.WatchDebateResponse]:
        """Follow a debate."""
        tenant, debate = _tenant(), check_id("debate_id", request.debate_id)
        after = request.after_sequence
        await self._check_start(debate, after)
        deltas = self._deltas if request.text_deltas else None
        found = watch(self._log, deltas, tenant, debate, after, self._heartbeat_seconds)
        with _store():
            async for each in self._draining.until(found):
                if isinstance(each, Envelope):
                    after = each.sequence
                yield _watched(each, after)

    async def Intervene(  # noqa: N802
        self,
        request: orchestrator_pb2.InterveneRequest,
        _context: object,
    ) -> orchestrator_pb2.InterveneResponse:
        """Steer a debate."""
        wish = _wish(request)
        with _store():
            if wish.wish == "mute":
                await self._check_agent(request.debate_id, wish.agent)
            sequence = await self._accepting.wish(_tenant(), request.debate_id, wish)
        return orchestrator_pb2.InterveneResponse(sequence=sequence)

    async def GetReport(  # noqa: N802
        self,
        request: orchestrator_pb2.GetReportRequest,
        _context: object,
    ) -> orchestrator_pb2.GetReportResponse:
        """Return a debate's report."""
        debate = check_id("debate_id", request.debate_id)
        folded = state.fold(await self._events(debate))
        return orchestrator_pb2.GetReportResponse(markdown=report.render(debate, folded))

    async def _events(self, debate: str) -> list[Envelope]:
        with _store():
            events = await read_events(self._log, _tenant(), debate)
        if not events:
            raise not_found("debate", debate)
        return events

    async def _check_start(self, debate: str, after: int) -> None:
        if after < 0:
            raise invalid_argument([FieldViolation("after_sequence", "must not be negative")])
        with _store():
            there = await self._log.read(log_name(_tenant(), debate), max(after - 1, 0), 1)
            known = there or await self._rows.get(_tenant(), debate)
        if not known:
            raise not_found("debate", debate)
        if not there and after > 0:
            message = f"the log of {debate} does not reach sequence {after}"
            raise ParleyError(grpc.StatusCode.OUT_OF_RANGE, "AFTER_END", message)

    async def _check_agent(self, debate: str, agent: str) -> None:
        folded = state.fold(await self._events(debate))
        ids = [each.id for each in folded.spec.agents]
        if agent not in ids:
            known = f"unknown agent {agent[:80]!r}; agents of this debate: {', '.join(ids)}"
            raise invalid_argument([FieldViolation("mute.agent_id", known)])
        muted = {wish.agent for wish in folded.wishes if wish.wish == "mute"}
        if muted | {agent} == set(ids):
            raise invalid_argument([FieldViolation("mute.agent_id", "one agent at least must be heard")])


@contextlib.contextmanager
def _store() -> Iterator[None]:
    """Tell the caller of trouble with the store in its own terms."""
    try:
        yield
    except CorruptEventError as corrupt:
        raise internal(str(corrupt), reason="LOG_DAMAGED") from corrupt
    except StorageError as error:
        raise unavailable("STORE_UNAVAILABLE", "the store is away; try again", retry_after=1.0) from error


def _digest(request: orchestrator_pb2.CreateDebateRequest) -> str:
    """Return what stands for the content of a request, as it was sent: what it is resolved to may change."""
    return hashlib.sha256(request.spec.SerializeToString(deterministic=True)).hexdigest()


def _tenant() -> str:
    return labels().get("tenant", "default")


def _watched(each: Watching, after: int) -> orchestrator_pb2.WatchDebateResponse:
    if isinstance(each, Envelope):
        return orchestrator_pb2.WatchDebateResponse(event=event_to_proto(each))
    if isinstance(each, Delta):
        delta = orchestrator_pb2.StepDelta(
            key=each.key, attempt=each.attempt, try_number=each.try_number, offset=each.offset, text=each.text
        )
        return orchestrator_pb2.WatchDebateResponse(delta=delta)
    return orchestrator_pb2.WatchDebateResponse(heartbeat=orchestrator_pb2.Heartbeat(last_sequence=after))


def _wish(request: orchestrator_pb2.InterveneRequest) -> Intervened:
    violations = Violations()
    check_request_id(violations, request.request_id)
    violations.check(
        that=bool(DEBATE_ID.fullmatch(request.debate_id)),
        field="debate_id",
        otherwise=f"{request.debate_id[:80]!r} is not a debate id",
    )
    kind = request.WhichOneof("wish")
    if kind is None:
        violations.add("wish", "must be set")
    guidance = request.guide.text
    if kind == "guide":
        fine = (
            bool(guidance.strip()) and len(guidance.encode()) <= _MOST_GUIDANCE_BYTES and "\0" not in guidance
        )
        violations.check(
            that=fine, field="guide.text", otherwise="must not be blank, at most 8 KiB, without NUL"
        )
    reason = request.cancel.reason
    violations.check(
        that=len(reason) <= _MOST_REASON and "\0" not in reason,
        field="cancel.reason",
        otherwise="must be at most 1000 characters, without NUL",
    )
    violations.refuse()
    return Intervened(
        request_id=request.request_id,
        wish=str(kind),
        text=guidance or request.cancel.reason,
        agent=request.mute.agent_id,
        stop_calls=request.pause.stop_calls,
    )


def _page(request: orchestrator_pb2.ListDebatesRequest) -> tuple[str | None, int, tuple[str, ...]]:
    violations = Violations()
    violations.check(
        that=0 <= request.page_size <= _MOST_PAGE, field="page_size", otherwise=f"must be 0 to {_MOST_PAGE}"
    )
    before = None
    if request.page_token:
        try:
            before = base64.urlsafe_b64decode(request.page_token.encode()).decode()
            datetime.fromisoformat(before.partition("/")[0])
        except (binascii.Error, ValueError):
            violations.add("page_token", "is not a token of this service")
    statuses = []
    for place, status in enumerate(request.statuses):
        try:
            statuses.append(status_from_proto(status))
        except ValueError:
            violations.add(f"statuses[{place}]", "is not a known state")
    violations.refuse()
    return before, request.page_size or _PAGE, tuple(statuses)


def _token(created: str) -> str:
    return base64.urlsafe_b64encode(created.encode()).decode()
