"""OrchestratorService: protobuf in and out."""

import asyncio
import base64
import binascii
import contextlib
import hashlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from datetime import datetime
from typing import Any

import grpc

from parley.orchestrator import report, roster, state
from parley.orchestrator.accepting import Accepting
from parley.orchestrator.deltas import Delta
from parley.orchestrator.envelope import Envelope
from parley.orchestrator.events import CorruptEventError, Intervened
from parley.orchestrator.forwarding import OWNER_KEY
from parley.orchestrator.ids import CHECKPOINT_KEY, DEBATE_ID
from parley.orchestrator.journal import log_name, read_events
from parley.orchestrator.requests import Violations, check_id, check_request_id, spec_of
from parley.orchestrator.rows import Rows
from parley.orchestrator.translation import debate_to_proto, event_to_proto, status_from_proto, summary
from parley.orchestrator.watching import Alive, Watched, Watching, slow_reader
from parley.runtime.draining import Draining
from parley.runtime.errors import (
    FieldViolation,
    ParleyError,
    failed_precondition,
    internal,
    invalid_argument,
    not_found,
    unavailable,
)
from parley.runtime.tenancy import current_tenant
from parley.storage.ports import Log, StorageError
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc

__all__ = ["OrchestratorServicer"]

_WatchContext = grpc.aio.ServicerContext[Any, Any]
_PAGE = 50
_MOST_PAGE = 200
_MOST_GUIDANCE_BYTES = 8 * 1024
_MOST_REASON = 1000
_FOR_CHECKPOINTS = frozenset({"continue", "answer", "approve"})
_MAY_NAME_CHECKPOINT = ("end", "guide", "continue_debate", "answer", "approve")


class OrchestratorServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for debates."""

    def __init__(
        self,
        *,
        log: Log,
        rows: Rows,
        accepting: Accepting,
        gateway: grpc.aio.Channel,
        watching: Watching,
        draining: Draining,
        owner: str,
        reader_seconds: float,
    ) -> None:
        """Stand on the replica's parts."""
        self._log = log
        self._rows = rows
        self._accepting = accepting
        self._gateway = gateway
        self._watching = watching
        self._draining = draining
        self._owner = owner
        self._reader_seconds = reader_seconds
        # Watchers of one debate come to an event at about the same time; its message is made once for all.
        self._latest: tuple[Envelope, orchestrator_pb2.WatchDebateResponse] | None = None

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
                current_tenant(), request.request_id, _digest(request), spec
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
            rows = await self._rows.page(current_tenant(), statuses, before, size + 1)
        token = _token(rows[size - 1].created) if len(rows) > size else ""
        debates = [summary(row) for row in rows[:size]]
        return orchestrator_pb2.ListDebatesResponse(debates=debates, next_page_token=token)

    async def WatchDebate(  # type: ignore[override]  # noqa: N802 - writes by itself, to see how long that takes
        self,
        request: orchestrator_pb2.WatchDebateRequest,
        context: _WatchContext,
    ) -> None:
        """Follow a debate."""
        debate, after = check_id("debate_id", request.debate_id), request.after_sequence
        await self._check_start(debate, after)
        with _store():
            async with aclosing(self._draining.until(self._found(request, context))) as found:
                async for each in found:
                    if isinstance(each, Envelope):
                        after = each.sequence
                    await self._write(context, self._message(each, after), after)

    def _found(
        self, request: orchestrator_pb2.WatchDebateRequest, context: _WatchContext
    ) -> AsyncGenerator[Watched, None]:
        owner = dict(context.invocation_metadata() or ()).get(OWNER_KEY)
        if owner is None:
            return self._watching.watch(
                current_tenant(), request.debate_id, request.after_sequence, text=request.text_deltas
            )
        if owner != self._owner:
            raise failed_precondition("NOT_OWNER", f"{self._owner} is here, not {owner!r}")
        return self._watching.text_of(request.debate_id)

    def _message(self, each: Watched, after: int) -> orchestrator_pb2.WatchDebateResponse:
        if not isinstance(each, Envelope):
            return _message(each, after)
        if self._latest is None or self._latest[0] is not each:
            self._latest = each, orchestrator_pb2.WatchDebateResponse(event=event_to_proto(each))
        return self._latest[1]

    async def _write(
        self, context: _WatchContext, message: orchestrator_pb2.WatchDebateResponse, last: int
    ) -> None:
        try:
            async with asyncio.timeout(self._reader_seconds):
                await context.write(message)
        except TimeoutError:
            raise slow_reader(last) from None

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
            if (
                wish.wish in _FOR_CHECKPOINTS and not wish.checkpoint
            ):  # one that is named is its owner's to decide
                await self._check_checkpoint(request.debate_id, wish)
            sequence = await self._accepting.wish(current_tenant(), request.debate_id, wish)
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
            events = await read_events(self._log, current_tenant(), debate)
        if not events:
            raise not_found("debate", debate)
        return events

    async def _check_start(self, debate: str, after: int) -> None:
        if after < 0:
            raise invalid_argument([FieldViolation("after_sequence", "must not be negative")])
        with _store():
            there = await self._log.read(log_name(current_tenant(), debate), max(after - 1, 0), 1)
            known = there or await self._rows.get(current_tenant(), debate)
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

    async def _check_checkpoint(self, debate: str, wish: Intervened) -> None:
        folded = state.fold(await self._events(debate))
        known = any(each.request_id == wish.request_id for each in folded.wishes)
        is_open = folded.waiting is not None and folded.waiting.checkpoint
        if not (known or folded.ended or is_open):
            raise failed_precondition("NO_CHECKPOINT", f"debate {debate} waits for nobody now")


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


def _message(each: Delta | Alive, after: int) -> orchestrator_pb2.WatchDebateResponse:
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
    for name in ("guide", "answer", "approve"):
        text = getattr(request, name).text
        blank = kind == name != "approve" and not text.strip()
        violations.check(
            that=not blank and len(text.encode()) <= _MOST_GUIDANCE_BYTES and "\0" not in text,
            field=f"{name}.text",
            otherwise=f"must {'' if name == 'approve' else 'not be blank, '}be at most 8 KiB, without NUL",
        )
    reason = request.cancel.reason
    violations.check(
        that=len(reason) <= _MOST_REASON and "\0" not in reason,
        field="cancel.reason",
        otherwise="must be at most 1000 characters, without NUL",
    )
    violations.check(
        that=not request.checkpoint or bool(CHECKPOINT_KEY.fullmatch(request.checkpoint)),
        field="checkpoint",
        otherwise="must be 1 to 256 characters: segments of a-z 0-9 . _ - with / between them",
    )
    violations.check(
        that=not request.checkpoint or kind is None or kind in _MAY_NAME_CHECKPOINT,
        field="checkpoint",
        otherwise=f"goes with {', '.join(_MAY_NAME_CHECKPOINT[:-1])} and {_MAY_NAME_CHECKPOINT[-1]} alone",
    )
    violations.refuse()
    return Intervened(
        request_id=request.request_id,
        wish=str(kind).removesuffix("_debate"),
        text=request.guide.text or request.answer.text or request.approve.text or request.cancel.reason,
        agent=request.mute.agent_id,
        stop_calls=request.pause.stop_calls,
        approved=request.approve.approved,
        checkpoint=request.checkpoint,
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
