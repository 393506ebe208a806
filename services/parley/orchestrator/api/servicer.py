"""OrchestratorService: protobuf in and out."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import grpc
from msgspec.structs import replace

from parley.orchestrator.allowance.allowance import Allowance
from parley.orchestrator.api.agents import AgentServicer
from parley.orchestrator.api.audit import AuditServicer
from parley.orchestrator.api.conversion import summary_to_proto, with_answer, without_texts
from parley.orchestrator.api.feedback_servicer import FeedbackServicer
from parley.orchestrator.api.folded_debates import FoldedDebates
from parley.orchestrator.api.hooks import HookServicer
from parley.orchestrator.api.imports import ImportServicer
from parley.orchestrator.api.interventions import intervention_event
from parley.orchestrator.api.keys import KeyServicer
from parley.orchestrator.api.links import LinkServicer
from parley.orchestrator.api.listing import listing_of
from parley.orchestrator.api.memory import MemoryServicer
from parley.orchestrator.api.page_tokens import cut_page
from parley.orchestrator.api.participants import ValidationContext
from parley.orchestrator.api.reading import (
    answer_of,
    contributions_page,
    contributions_response,
    debate_response,
    report_response,
    report_responses,
    require_completed,
    wants_full_view,
)
from parley.orchestrator.api.receipts import ReceiptKeys
from parley.orchestrator.api.requests import check_id, digest_content, most_found_characters, resolve_request
from parley.orchestrator.api.route_warnings import budget_warnings, context_warnings
from parley.orchestrator.api.store_trouble import map_store_errors
from parley.orchestrator.api.watch_messages import WatchMessages
from parley.orchestrator.audit.parts import AuditLogs
from parley.orchestrator.delivery.channels.channels import Channels
from parley.orchestrator.delivery.tenant_hooks import TenantHooks
from parley.orchestrator.engine.debate_deleter import DebateDeleter
from parley.orchestrator.engine.debate_importer import DebateImporter
from parley.orchestrator.engine.feedback_reporter import FeedbackReporter
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.engine.intake import Intake
from parley.orchestrator.keys.tenant_keys import TenantKeys
from parley.orchestrator.links.tokens import LinkTokens
from parley.orchestrator.links.uses import LinkUses
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.feedback import FeedbackStore
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.reading import log_name
from parley.orchestrator.peers import roster
from parley.orchestrator.roles.catalogue import Roles
from parley.orchestrator.watch.deltas import OWNER_KEY
from parley.orchestrator.watch.slow_readers import SlowReaders
from parley.orchestrator.watch.watcher import DebateWatcher, WatchItem, slow_reader_error
from parley.runtime import audit
from parley.runtime.acts import current_act
from parley.runtime.byte_budget import ByteBudget
from parley.runtime.draining import Draining
from parley.runtime.errors import (
    FieldViolation,
    ParleyError,
    failed_precondition,
    invalid_argument,
    not_found,
)
from parley.runtime.identity.guard import TENANT
from parley.runtime.identity.identity import current_identity, current_tenant
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.request_reading import request_bytes
from parley.runtime.validation import REQUEST_ID
from parley.storage.ports import Log
from parley.v1 import event_pb2, orchestrator_pb2
from parley.v1.debate_pb2 import Debate, DebateEstimate, DebateSpec
from parley.v1.gateway_pb2_grpc import GatewayServiceStub
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from parley.v1.ratings_pb2_grpc import RatingsServiceStub

if TYPE_CHECKING:  # imported on use: most orchestrators read no page
    from parley.orchestrator.research.sources import WebSources

_WatchContext = grpc.aio.ServicerContext[Any, Any]
_MAX_EVALUATIONS = 100
_SENDING_BYTES = 32 * 1024 * 1024
"""Of large messages that are being sent to watchers, of which one tenant has half."""
_LARGE_MESSAGE = 64 * 1024
_LOG_PAGE = 20
"""Records of a log that are read, and sent, at a time."""


@dataclass(slots=True)
class OrchestratorServicer(
    AgentServicer,
    AuditServicer,
    FeedbackServicer,
    HookServicer,
    KeyServicer,
    LinkServicer,
    MemoryServicer,
    ImportServicer,
):
    """Answers for debates.

    Attributes:
        owner: The name that this replica claims under.
        slow_readers: Cuts off a watcher that accepts no message for too long.
        web: What is read on the web for debates; None: nothing.
        sending: Bounds the bytes of large messages to watchers.
    """

    log: Log
    index: DebateIndex
    debates: FoldedDebates
    formats: Formats
    roles: Roles
    intake: Intake
    gateway: grpc.aio.Channel
    watcher: DebateWatcher
    feedback: FeedbackStore
    reporter: FeedbackReporter
    deletions: DebateDeleter
    allowance: Allowance
    audit_logs: AuditLogs
    keys: TenantKeys
    hooks: TenantHooks
    channels: Channels
    links: LinkTokens | None
    link_uses: LinkUses
    agents: GatewayServiceStub
    memory: MemoryServiceStub
    ratings: RatingsServiceStub
    receipt_keys: ReceiptKeys
    importer: DebateImporter
    draining: Draining
    owner: str
    slow_readers: SlowReaders
    web: "WebSources | None"
    sending: ByteBudget = field(default_factory=lambda: ByteBudget(_SENDING_BYTES))
    # Watchers of one debate come to an event at about the same time; its message is created once for all.
    _messages: WatchMessages = field(default_factory=WatchMessages)

    async def CreateDebate(  # noqa: N802
        self,
        request: orchestrator_pb2.CreateDebateRequest,
        _context: object,
    ) -> orchestrator_pb2.CreateDebateResponse:
        """Accept a debate."""
        if self.draining.is_set():
            raise self.draining.error()
        size = request_bytes()
        async with self.allowance.admit_request(current_tenant(), size):
            # In a thread if it is large: the digest is computed before any check.
            content = await in_thread_if_large(size, partial(digest_content, request))
            # Before any other service is called: it may be away, or have changed.
            earlier = await self._find_earlier(request.request_id, content)
            if earlier is not None:
                return orchestrator_pb2.CreateDebateResponse(debate_id=earlier, existed=True)
            caller = current_identity()
            with map_store_errors():
                async with self.allowance.admit_debate(current_tenant(), caller.budget, caller.budget_key_id):
                    debate, existed = await self._accept(request, size, content)
        return orchestrator_pb2.CreateDebateResponse(debate_id=debate, existed=existed)

    async def EstimateDebate(  # noqa: N802
        self,
        request: orchestrator_pb2.CreateDebateRequest,
        _context: object,
    ) -> orchestrator_pb2.EstimateDebateResponse:
        """Return what a debate is expected to take."""
        if self.draining.is_set():
            raise self.draining.error()
        size = request_bytes()
        async with self.allowance.admit_request(current_tenant(), size):
            request.request_id = request.request_id or "estimate"  # it is no debate's, and need not be given
            created, _ = await self._resolve(request, size)
        estimate = created.estimate if created.HasField("estimate") else None
        return orchestrator_pb2.EstimateDebateResponse(estimate=estimate)

    async def GetDebate(  # noqa: N802
        self,
        request: orchestrator_pb2.GetDebateRequest,
        _context: object,
    ) -> orchestrator_pb2.GetDebateResponse:
        """Return a debate."""
        debate_id, is_whole = check_id(request.debate_id), wants_full_view(request)
        debate, size = await self.debates.get_with_size(current_tenant(), debate_id)
        with map_store_errors():
            about = await self.index.list_about(current_tenant(), debate_id, _MAX_EVALUATIONS)
            feedback = await self.feedback.get_latest(current_tenant(), debate_id)
        view = (
            partial(with_answer, debate, self._format_of(debate))
            if is_whole
            else partial(without_texts, debate)
        )
        respond = partial(debate_response, view, [each.debate for each in about], feedback)
        return await in_thread_if_large(size, respond)

    async def GetAnswer(  # noqa: N802
        self,
        request: orchestrator_pb2.GetAnswerRequest,
        _context: object,
    ) -> orchestrator_pb2.GetAnswerResponse:
        """Return a debate's answer."""
        debate_id = check_id(request.debate_id)
        debate, size = await self.debates.get_with_size(current_tenant(), debate_id)
        return await in_thread_if_large(size, partial(answer_of, debate, self._format_of(debate)))

    async def ListContributions(  # noqa: N802
        self,
        request: orchestrator_pb2.ListContributionsRequest,
        _context: object,
    ) -> orchestrator_pb2.ListContributionsResponse:
        """Return a page of contributions."""
        debate_id, page = check_id(request.debate_id), contributions_page(request)
        return contributions_response(page, await self._get_debate(debate_id))

    async def ListDebates(  # noqa: N802
        self,
        request: orchestrator_pb2.ListDebatesRequest,
        _context: object,
    ) -> orchestrator_pb2.ListDebatesResponse:
        """Return a page of debates."""
        listing = listing_of(request, self.formats)
        with map_store_errors():
            index = await self.index.list_page(
                current_tenant(), listing.debate_filter, listing.after, listing.size + 1
            )
        page, token = cut_page(index, listing.size, attrgetter("created"), listing.fingerprint)
        return orchestrator_pb2.ListDebatesResponse(
            debates=map(summary_to_proto, page), next_page_token=token
        )

    async def WatchDebate(  # type: ignore[override]  # noqa: N802 - writes by itself, to see how long that takes
        self,
        request: orchestrator_pb2.WatchDebateRequest,
        context: _WatchContext,
    ) -> None:
        """Follow a debate."""
        debate, after = check_id(request.debate_id), request.after_sequence
        await self._check_start(debate, after)
        current_act().finish()
        await context.send_initial_metadata(((TENANT, current_tenant()),))
        timeout = asyncio.timeout(None)
        try:
            with map_store_errors():
                async with (
                    timeout,
                    aclosing(self.draining.until(self._open_watch(request, context))) as found,
                ):
                    async for each in found:
                        if isinstance(each, tuple) and isinstance(last := each[-1], Envelope):
                            after = last.sequence
                        await self._write(context, self._messages.write(each, after), timeout)
        except TimeoutError:
            if timeout.expired():
                raise slow_reader_error(after) from None
            raise

    def _open_watch(
        self, request: orchestrator_pb2.WatchDebateRequest, context: _WatchContext
    ) -> AsyncGenerator[WatchItem, None]:
        owner = dict(context.invocation_metadata() or ()).get(OWNER_KEY)
        tenant, debate = current_tenant(), request.debate_id
        if owner is None:
            return self.watcher.watch(
                tenant, debate, request.after_sequence, text=request.text_deltas, batches=request.batches
            )
        if owner != self.owner:
            raise failed_precondition("NOT_OWNER", f"{self.owner} is here, not {owner!r}")
        return self.watcher.stream_text(tenant, debate)

    async def _write(self, context: _WatchContext, message: bytes, stream: asyncio.Timeout) -> None:
        """Write a message. A large one waits for its share of the bytes that are sent at a time: each reader gets a copy."""
        if len(message) <= _LARGE_MESSAGE:
            await self.slow_readers.wait_for(context.write(message), stream)
            return
        async with self.sending.hold(len(message)):
            await self.slow_readers.wait_for(context.write(message), stream)

    async def Intervene(  # noqa: N802
        self,
        request: orchestrator_pb2.InterveneRequest,
        _context: object,
    ) -> orchestrator_pb2.InterveneResponse:
        """Steer a debate."""
        intervened = intervention_event(request, current_identity().subject)
        with map_store_errors():
            sequence = await self.intake.intervene(current_tenant(), request.debate_id, intervened)
        return orchestrator_pb2.InterveneResponse(sequence=sequence)

    async def ReadLog(  # noqa: N802
        self,
        request: orchestrator_pb2.ReadLogRequest,
        _context: object,
    ) -> AsyncGenerator[orchestrator_pb2.ReadLogResponse, None]:
        """Send the stored bytes of a log."""
        debate, after = check_id(request.debate_id), request.after_sequence
        await self._check_start(debate, after)
        name = log_name(current_tenant(), debate)
        while True:
            with map_store_errors():
                records = await self.log.read(name, after, _LOG_PAGE)
            for record in records:
                events = record.entries[max(after + 1 - record.first, 0) :]
                yield orchestrator_pb2.ReadLogResponse(events=events)
                after = record.last
            if len(records) < _LOG_PAGE:
                return

    async def GetReport(  # noqa: N802
        self,
        request: orchestrator_pb2.GetReportRequest,
        _context: object,
    ) -> orchestrator_pb2.GetReportResponse:
        """Return a debate's report."""
        debate = check_id(request.debate_id)
        pieces = await self._report_pieces(debate)
        # In a thread: a debate of megabytes would delay all other callers.
        return await asyncio.to_thread(report_response, debate, pieces)

    async def StreamReport(  # noqa: N802
        self,
        request: orchestrator_pb2.StreamReportRequest,
        _context: object,
    ) -> AsyncGenerator[orchestrator_pb2.StreamReportResponse, None]:
        """Send a debate's report in parts."""
        responses = report_responses(await self._report_pieces(check_id(request.debate_id)))
        while (response := await asyncio.to_thread(next, responses, None)) is not None:
            yield response

    async def GetDecision(  # noqa: N802
        self,
        request: orchestrator_pb2.GetDecisionRequest,
        _context: object,
    ) -> orchestrator_pb2.GetDecisionResponse:
        """Return the decision document of a debate."""
        debate = await self._get_debate(check_id(request.debate_id))
        from parley.orchestrator.api.decision import decision_of, require_moderated_outcome

        return decision_of(debate, require_moderated_outcome(debate), self._format_of(debate))

    async def GetAnalysis(  # noqa: N802
        self,
        request: orchestrator_pb2.GetAnalysisRequest,
        _context: object,
    ) -> orchestrator_pb2.GetAnalysisResponse:
        """Return what is known about a debate besides its answer."""
        debate_id = check_id(request.debate_id)
        found, size = await self.debates.get_with_size(current_tenant(), debate_id)
        debate = require_completed(found, "has an analysis")
        from parley.orchestrator.api.report_analysis import analysis_of

        return await in_thread_if_large(size, partial(analysis_of, debate, self._format_of(debate)))

    async def DeleteDebate(  # noqa: N802
        self,
        request: orchestrator_pb2.DeleteDebateRequest,
        _context: object,
    ) -> orchestrator_pb2.DeleteDebateResponse:
        """Delete a debate for good."""
        debate = check_id(request.debate_id)
        with map_store_errors():
            finished = await self.deletions.delete(current_tenant(), debate, ratings=request.ratings)
        audit.report_act(f"debate {debate}")
        return orchestrator_pb2.DeleteDebateResponse(finished=finished)

    async def _find_earlier(self, request_id: str, content: str) -> str | None:
        """Return the id of the debate that the same request created; None if there is none, or the request is never accepted."""
        if not content or not REQUEST_ID.fullmatch(request_id):
            return None
        with map_store_errors():
            return await self.intake.find_earlier(current_tenant(), request_id, content)

    async def _accept(
        self, request: orchestrator_pb2.CreateDebateRequest, size: int, content: str
    ) -> tuple[str, bool]:
        """Accept a debate; return its id, and whether the same request has created it meanwhile."""
        created, subject = await self._resolve(request, size)
        caller = current_identity()
        created.requested_by, created.budget_key_id = caller.subject, caller.budget_key_id
        found = most_found_characters(created.spec, self.web)
        return await self.intake.create_debate(current_tenant(), created, content, subject, size, found)

    async def _resolve(
        self, request: orchestrator_pb2.CreateDebateRequest, size: int
    ) -> tuple[event_pb2.DebateCreated, str | None]:
        """Return the first event of the debate that a request asks for, and the id of the debate that it is about, if any."""
        known = ValidationContext(self.formats, self.roles, await roster.fetch_roster(self.gateway), self.web)
        created = await in_thread_if_large(size, partial(resolve_request, request, known))
        await self.check_named_hooks(request.spec.hook_ids)
        routes = await roster.fetch_routes(self.gateway, roster.routes_of(created.spec, known.roster))
        if not created.demonstration and any(each.demonstration for each in routes.values()):
            # Its defaults are others.
            known = replace(known, roster=roster.with_demonstrations(known.roster, routes))
            created = await in_thread_if_large(size, partial(resolve_request, request, known))
        subject = await self._apply_subject(created.spec)
        roster.set_routes(created.spec, known.roster, routes)
        about = (created.spec, known.roster, routes)
        created.warnings.extend((*budget_warnings(*about), *context_warnings(*about)))
        estimate = self.formats.get(created.spec.format).estimate
        if estimate is not None:
            found = most_found_characters(created.spec, self.web)
            created.estimate.CopyFrom(await in_thread_if_large(size, partial(estimate, created, found)))
            priced, unpriced = roster.routes_by_price(*about)
            created.estimate.MergeFrom(DebateEstimate(priced_routes=priced, unpriced_routes=unpriced))
        return created, subject

    async def _apply_subject(self, spec: DebateSpec) -> str | None:
        """Set in a specification what it needs of the debate that it is about; return that debate's id, None if there is none."""
        if (subject := self.formats.get(spec.format).subject) is None:
            return None
        debate_id = subject.debate_id(spec)
        debate = require_completed(await self._get_debate(debate_id), "can be evaluated")
        subject.apply(spec, with_answer(debate, self._format_of(debate), alone=True))
        return debate_id

    async def _report_pieces(self, debate_id: str) -> Iterator[str]:
        debate = await self._get_debate(debate_id)
        with map_store_errors():
            feedback = await self.feedback.get_latest(current_tenant(), debate_id)
        from parley.orchestrator.api.report import report_pieces  # a dozen modules: a start needs none

        return report_pieces(debate, self._format_of(debate), feedback)

    async def _get_debate(self, debate_id: str) -> Debate:
        return await self.debates.get(current_tenant(), debate_id)

    def _format_of(self, debate: Debate) -> Format | None:
        return self.formats.find(debate.spec.format)

    async def _check_start(self, debate: str, after: int) -> None:
        if after < 0:
            raise invalid_argument([FieldViolation("after_sequence", "must not be negative")])
        name = log_name(current_tenant(), debate)
        with map_store_errors():
            there = not after or await self.log.read(name, after - 1, 1)
            known = self.intake.runner.owns(name) or await self.index.get_by_key(name)
        if not known:
            raise not_found("debate", debate)
        if not there:
            message = f"the log of {debate} does not reach sequence {after}"
            raise ParleyError(grpc.StatusCode.OUT_OF_RANGE, "AFTER_END", message)
