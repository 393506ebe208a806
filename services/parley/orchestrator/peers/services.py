"""Clients of the other services: convergence, ratings and memory, and an issue tracker.

A debate can run without convergence and memory, so that a call to them fails soon and is recorded; it first waits for the end
of a restart or a drain. The results of a debate must not be lost: recording waits for as long as the service is away.
"""

from collections.abc import Awaitable, Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

import grpc
from msgspec import Struct

from parley.orchestrator.model.errors import ServiceUnavailableError, StepError
from parley.orchestrator.model.short_text import to_beginning
from parley.orchestrator.peers.issue_tracker import IssueTracker
from parley.runtime.backoff import Backoff, retry
from parley.runtime.clock import Clock, SystemClock
from parley.runtime.errors import ParleyError, from_rpc_error, is_transport
from parley.v1 import (
    convergence_pb2,
    convergence_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    ratings_pb2,
    ratings_pb2_grpc,
)
from parley.v1.event_pb2 import PastDebates

if TYPE_CHECKING:  # imported on use: most orchestrators read no page
    from parley.orchestrator.research.sources import WebSources

_REQUEST_SECONDS = 10.0
_RECALL_SECONDS = 4.0
"""How long first drafts wait for past debates, and as long again if memory is away at first."""
_READ_SECONDS = 60.0
"""For positions: 32 agents have 496 pairs, and the model that reads them is loaded when it is first asked."""
_WRITE_SECONDS = 30.0
_RESTART_SECONDS = 8.0
"""How long a call to a service that is away is retried. After that, calls are not retried until the service has answered."""
_RESTART_PAUSES = Backoff(first=0.2, maximum=1.0, jitter=0.2)
_UNAVAILABLE_CODES = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAUTHENTICATED,
    }
)
"""Codes of errors that pass: of the service itself, of a store or another service behind it, or of a secret that is being
replaced."""
_MAX_TEXT_CHARACTERS = 100_000
"""Characters of a question or a text that convergence and memory accept."""
_MAX_POSITIONS_BYTES = 12 * 1024 * 1024
"""Of all texts in one request to convergence, so that two rounds of 32 agents fit a message in any script."""
_MAX_REMEMBERED_BYTES = 256 * 1024
"""Bytes of a conclusion that memory accepts."""
_LAST_CORRECTION = 2**31 - 1
"""The highest number of a match's correction: no other can follow."""
_NO_MATCH = "DEBATE_NOT_FOUND"
_MAX_SHOWN_QUESTION = 500
_MAX_SHOWN_CONCLUSION = 1500
_MAX_SHOWN_PARTS = 5
_MAX_SHOWN_PART = 300
"""Characters kept of a past debate, and dissents and quotations: agents are to be reminded of it, not to read it again."""

T = TypeVar("T")


class _ServiceCaller:
    """Calls one service that a debate can run without."""

    def __init__(self, service: str, clock: Clock, restart_seconds: float) -> None:
        self._service = service
        self._clock = clock
        self._restart_seconds = restart_seconds
        self._waits_for_restart = True

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return an answer; wait for a service that is away. Raises StepError if there is no answer, for any reason."""
        seconds = self._restart_seconds if self._waits_for_restart else 0.0
        try:
            found = await retry(
                ask, on=_is_restarting, backoff=_RESTART_PAUSES, clock=self._clock, seconds=seconds
            )
        except grpc.aio.AioRpcError as error:
            details, service = from_rpc_error(error), self._service
            self._waits_for_restart = not _is_restarting(error)
            if _is_unavailable(error):
                raise StepError(f"{service.upper()}_AWAY", _explain_absence(service, details)) from error
            raise StepError(
                details.reason or details.code.name, f"{service}: {_join_lines(details)}"
            ) from error
        self._waits_for_restart = True
        return found


async def _await_write(service: str, answer: Awaitable[T]) -> T:
    """Return an answer that must not be lost. Raises ServiceUnavailableError while the service is away, else StepError."""
    try:
        return await answer
    except grpc.aio.AioRpcError as error:
        details = from_rpc_error(error)
        if _is_unavailable(error):
            raise ServiceUnavailableError(_explain_absence(service, details)) from error
        raise StepError(details.reason or details.code.name, f"{service}: {_join_lines(details)}") from error


def _is_restarting(error: BaseException) -> bool:
    """Return whether a retry soon may succeed: with a service that is up but slow it would not.

    A service that does not know our secret may get it at any moment, if the secret is being replaced.
    """
    return isinstance(error, grpc.aio.AioRpcError) and (
        is_transport(error) or error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED}
    )


def _is_unavailable(error: grpc.aio.AioRpcError) -> bool:
    return is_transport(error) or error.code() in _UNAVAILABLE_CODES


def _explain_absence(service: str, error: ParleyError) -> str:
    if error.code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"{service} did not answer in time"
    return f"{service} is away: {_join_lines(error)}"


def _join_lines(error: ParleyError) -> str:
    return " ".join(error.message.split())


class Convergence:
    """Agreement, grouping, and what texts mean."""

    def __init__(self, channel: grpc.aio.Channel, clock: Clock | None = None) -> None:
        """Ask over `channel`."""
        self._caller = _ServiceCaller("convergence", clock or SystemClock(), _RESTART_SECONDS)
        self._stub = convergence_pb2_grpc.ConvergenceServiceStub(channel)

    async def group_positions(
        self, request: convergence_pb2.GroupPositionsRequest
    ) -> convergence_pb2.GroupPositionsResponse:
        """Return the groups of positions."""
        _truncate_texts(request.positions)
        return await self._caller.call(lambda: self._stub.GroupPositions(request, timeout=_READ_SECONDS))

    async def assess(self, request: convergence_pb2.AssessRequest) -> convergence_pb2.AssessResponse:
        """Return the assessment of a round's work."""
        _truncate_texts([*request.positions, *request.previous])
        return await self._caller.call(lambda: self._stub.Assess(request, timeout=_READ_SECONDS))

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return a vector of length 1 for each text, by the model that is fast; they cannot be kept."""
        found = await self._caller.call(lambda: self._embed(texts))
        if len(found) != len(texts) or not all(each and all(map(isfinite, each)) for each in found):
            raise StepError(
                "NO_VECTORS", "convergence: its answer lacks vectors, or has numbers that are not finite"
            )
        return found

    async def find_support(
        self, request: convergence_pb2.FindSupportRequest
    ) -> convergence_pb2.FindSupportResponse:
        """Return what supports claims, as a local model says."""
        return await self._caller.call(lambda: self._stub.FindSupport(request, timeout=_READ_SECONDS))

    async def _embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        requests = (
            convergence_pb2.EmbedRequest(text=each, model=convergence_pb2.EMBEDDING_MODEL_FAST)
            for each in texts
        )
        return [each.vector async for each in self._stub.Embed(requests, timeout=_REQUEST_SECONDS)]


class Ratings:
    """The record of matches, and the ratings that follow from it."""

    def __init__(self, channel: grpc.aio.Channel, clock: Clock | None = None) -> None:
        """Ask over `channel`."""
        self._caller = _ServiceCaller("ratings", clock or SystemClock(), _RESTART_SECONDS)
        self._stub = ratings_pb2_grpc.RatingsServiceStub(channel)

    async def get_weights(self, request: ratings_pb2.GetWeightsRequest) -> ratings_pb2.GetWeightsResponse:
        """Return the weights of votes."""
        return await self._caller.call(lambda: self._stub.GetWeights(request, timeout=_REQUEST_SECONDS))

    async def select_team(self, request: ratings_pb2.SelectTeamRequest) -> ratings_pb2.SelectTeamResponse:
        """Return the chosen candidates, and the reasons."""
        return await self._caller.call(lambda: self._stub.SelectTeam(request, timeout=_REQUEST_SECONDS))

    async def record_match(self, request: ratings_pb2.RecordMatchRequest) -> ratings_pb2.RecordMatchResponse:
        """Record scores as a match."""
        return await _await_write("ratings", self._stub.RecordMatch(request, timeout=_WRITE_SECONDS))

    async def record_feedback(
        self, request: ratings_pb2.RecordFeedbackRequest
    ) -> ratings_pb2.RecordFeedbackResponse:
        """Record a person's feedback on a debate."""
        return await _await_write("ratings", self._stub.RecordFeedback(request, timeout=_WRITE_SECONDS))

    async def void_match(self, debate: str, reason: str) -> None:
        """Remove a debate's match for good; do nothing if there is none."""
        request = ratings_pb2.CorrectMatchRequest(
            debate_id=debate, number=_LAST_CORRECTION, void=True, reason=reason
        )
        try:
            await _await_write("ratings", self._stub.CorrectMatch(request, timeout=_WRITE_SECONDS))
        except StepError as error:
            if error.reason != _NO_MATCH:
                raise


class Memory:
    """Past debates."""

    def __init__(self, channel: grpc.aio.Channel, clock: Clock | None = None) -> None:
        """Ask over `channel`."""
        self._caller = _ServiceCaller("memory", clock or SystemClock(), _RECALL_SECONDS)
        self._stub = memory_pb2_grpc.MemoryServiceStub(channel)

    async def recall(self, request: memory_pb2.RecallRequest) -> PastDebates:
        """Return past debates, best first and shortened."""
        return await self._caller.call(lambda: self._recall(request))

    async def list_patterns(self, request: memory_pb2.ListPatternsRequest) -> memory_pb2.ListPatternsResponse:
        """Return the first page of critique patterns, each with its latest example alone."""
        found = await self._caller.call(lambda: self._stub.ListPatterns(request, timeout=_RECALL_SECONDS))
        return memory_pb2.ListPatternsResponse(patterns=[_shorten_pattern(each) for each in found.patterns])

    async def record_debate(self, request: memory_pb2.RecordDebateRequest) -> memory_pb2.RecordDebateResponse:
        """Remember a debate."""
        return await _await_write("memory", self._stub.RecordDebate(request, timeout=_WRITE_SECONDS))

    async def rate_debate(self, request: memory_pb2.RateDebateRequest) -> memory_pb2.RateDebateResponse:
        """Record a person's feedback on a debate."""
        return await _await_write("memory", self._stub.RateDebate(request, timeout=_WRITE_SECONDS))

    async def forget_debate(self, debate: str) -> None:
        """Forget a debate for good; do nothing if it is not remembered."""
        request = memory_pb2.ForgetDebateRequest(debate_id=debate)
        await _await_write("memory", self._stub.ForgetDebate(request, timeout=_WRITE_SECONDS))

    async def _recall(self, request: memory_pb2.RecallRequest) -> PastDebates:
        found = PastDebates()
        async for each in self._stub.Recall(request, timeout=_RECALL_SECONDS):
            found.debates.append(_shorten_debate(each.debate))
        return found


class Services(Struct, frozen=True):
    """The clients of all other services.

    Attributes:
        issues: The tracker in which decisions become issues; None if the operator named none.
        web: What is read on the web; None if the operator has switched nothing on.
    """

    convergence: Convergence
    ratings: Ratings
    memory: Memory
    issues: IssueTracker | None = None
    web: "WebSources | None" = None


def truncate_text(text: str) -> str:
    """Return as much of a text as convergence and memory accept."""
    return text[:_MAX_TEXT_CHARACTERS]


def truncate_conclusion(text: str) -> str:
    """Return as much of a conclusion as memory accepts."""
    return text.encode()[:_MAX_REMEMBERED_BYTES].decode(errors="ignore")


def _truncate_texts(positions: Sequence[convergence_pb2.AgentPosition]) -> None:
    """Cut texts that together are too large for a message, each to its share."""
    if sum(len(each.text.encode()) for each in positions) > _MAX_POSITIONS_BYTES:
        share = _MAX_POSITIONS_BYTES // len(positions)
        for each in positions:
            each.text = each.text.encode()[:share].decode(errors="ignore")


def _shorten_pattern(pattern: memory_pb2.CritiquePattern) -> memory_pb2.CritiquePattern:
    """Return a critique pattern with as much as agents are shown, and what it is found again by."""
    return memory_pb2.CritiquePattern(
        pattern_id=pattern.pattern_id,
        examples=[to_beginning(each, _MAX_SHOWN_PART) for each in pattern.examples[:1]],
        raised=pattern.raised,
        taken_up=pattern.taken_up,
        similarity_percent=pattern.similarity_percent,
    )


def _shorten_debate(debate: memory_pb2.PastDebate) -> memory_pb2.PastDebate:
    """Return a past debate with as much as agents are shown."""
    short = memory_pb2.PastDebate()
    short.CopyFrom(debate)
    short.question = to_beginning(debate.question, _MAX_SHOWN_QUESTION)
    short.conclusion = to_beginning(debate.conclusion, _MAX_SHOWN_CONCLUSION)
    for parts in (short.dissents, short.evidence):
        del parts[_MAX_SHOWN_PARTS:]
        for each in parts:
            each.text = to_beginning(each.text, _MAX_SHOWN_PART)
    return short
