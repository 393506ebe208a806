"""The other services as the orchestrator reaches them: convergence, ratings and memory.

A debate can do without what convergence and memory add to it, so that asking them fails soon and is recorded. What
follows from a debate must not be lost: recording waits for as long as the service is away.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import grpc

from parley.orchestrator.contributions import Contribution
from parley.orchestrator.errors import OutOfReachError, StepError
from parley.orchestrator.events import Json, Solution
from parley.orchestrator.spec import DebateSpec
from parley.runtime.errors import ParleyError, from_rpc_error, is_transport
from parley.v1 import (
    convergence_pb2,
    convergence_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    ratings_pb2,
    ratings_pb2_grpc,
)

__all__ = ["Convergence", "Memory", "Ratings", "Services"]

_ASKED_SECONDS = 10.0
_RECORDED_SECONDS = 30.0
_AWAY = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}
)
"""Codes of trouble that passes: of the service itself, or of a store or another service behind it."""
_READ_CHARACTERS = 100_000
"""Characters of a question or a text that convergence and memory take."""
_REMEMBERED_BYTES = 256 * 1024
"""Bytes of a conclusion that memory takes."""
_SHOWN_QUESTION = 500
_SHOWN_CONCLUSION = 1500
"""Characters kept of a past debate: agents are to be reminded of it, not to read it again."""

T = TypeVar("T")


async def _asked(service: str, answer: Awaitable[T]) -> T:
    """Return an answer that the debate can do without. Raises StepError where there is none, for whatever reason."""
    try:
        return await answer
    except grpc.aio.AioRpcError as error:
        told = from_rpc_error(error)
        if _is_away(error):
            raise StepError(f"{service.upper()}_AWAY", f"{service} is away: {_line(told)}") from error
        raise StepError(told.reason or told.code.name, f"{service}: {_line(told)}") from error


async def _recorded(service: str, answer: Awaitable[T]) -> T:
    """Return an answer that must not be lost. Raises OutOfReachError while the service is away, else StepError."""
    try:
        return await answer
    except grpc.aio.AioRpcError as error:
        told = from_rpc_error(error)
        if _is_away(error):
            raise OutOfReachError(f"{service} is away: {_line(told)}") from error
        raise StepError(told.reason or told.code.name, f"{service}: {_line(told)}") from error


def _is_away(error: grpc.aio.AioRpcError) -> bool:
    return is_transport(error) or error.code() in _AWAY


def _line(told: ParleyError) -> str:
    return " ".join(told.message.split())


class Convergence:
    """Agreement and grouping."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Ask over `channel`."""
        self._stub = convergence_pb2_grpc.ConvergenceServiceStub(channel)

    async def group(self, spec: DebateSpec, drafts: Sequence[Contribution]) -> Json:
        """Return the drafts grouped by position: `{"groups": [{"agents", "position"}], "majority"}`."""
        request = convergence_pb2.GroupPositionsRequest(
            question=spec.question[:_READ_CHARACTERS], stands=_stands(drafts)
        )
        answer = await _asked("convergence", self._stub.GroupPositions(request, timeout=_ASKED_SECONDS))
        groups: list[Json] = [
            {"agents": list(group.agent_ids), "position": group.position} for group in answer.groups
        ]
        return {"groups": groups, "majority": answer.majority}

    async def assess(
        self, spec: DebateSpec, work: Sequence[Contribution], before: Sequence[Contribution]
    ) -> Json:
        """Return what follows from a round's work: `{"verdict", "agreement_percent", "reason"}`."""
        request = convergence_pb2.AssessRequest(
            question=spec.question[:_READ_CHARACTERS],
            stands=_stands(work),
            previous=_stands(before),
            agreement_threshold_percent=spec.termination.threshold_percent,
        )
        answer = await _asked("convergence", self._stub.Assess(request, timeout=_ASKED_SECONDS))
        verdict = convergence_pb2.ConvergenceVerdict.Name(answer.verdict).removeprefix("CONVERGENCE_VERDICT_")
        return {"verdict": verdict, "agreement_percent": answer.agreement_percent, "reason": answer.reason}


class Ratings:
    """The record of matches."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Ask over `channel`."""
        self._stub = ratings_pb2_grpc.RatingsServiceStub(channel)

    async def record(self, debate: str, spec: DebateSpec, solution: Solution) -> Json:
        """Record the judge's scores as a match; return `{"existed"}`."""
        results = [
            ratings_pb2.MatchResult(agent_id=agent, score=score)
            for agent, score in sorted(solution.scores.items())
        ]
        request = ratings_pb2.RecordMatchRequest(debate_id=debate, domain=spec.domain, results=results)
        answer = await _recorded("ratings", self._stub.RecordMatch(request, timeout=_RECORDED_SECONDS))
        return {"existed": answer.existed}


class Memory:
    """Past debates."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Ask over `channel`."""
        self._stub = memory_pb2_grpc.MemoryServiceStub(channel)

    async def recall(self, debate: str, spec: DebateSpec) -> Json:
        """Return past debates like the question, best first: `[{"debate", "question", "conclusion"}]`, shortened."""
        return await _asked("memory", self._recall(debate, spec))

    async def record(self, debate: str, spec: DebateSpec, solution: Solution, concluded: datetime) -> Json:
        """Remember a debate; return `{"existed"}`."""
        conclusion = solution.description.encode()[:_REMEMBERED_BYTES].decode(errors="ignore")
        request = memory_pb2.RecordDebateRequest(
            debate_id=debate, question=spec.question, conclusion=conclusion, domain=spec.domain
        )
        request.concluded_at.FromDatetime(concluded)
        answer = await _recorded("memory", self._stub.RecordDebate(request, timeout=_RECORDED_SECONDS))
        return {"existed": answer.existed}

    async def _recall(self, debate: str, spec: DebateSpec) -> Json:
        request = memory_pb2.RecallRequest(
            text=spec.question[:_READ_CHARACTERS], limit=spec.history_limit, excluded_debate_ids=[debate]
        )
        found: list[Json] = []
        async for each in self._stub.Recall(request, timeout=_ASKED_SECONDS):
            question = _shortened(each.question, _SHOWN_QUESTION)
            conclusion = _shortened(each.conclusion, _SHOWN_CONCLUSION)
            found.append({"debate": each.debate_id, "question": question, "conclusion": conclusion})
        return found


@dataclass(frozen=True, slots=True)
class Services:
    """The three of them."""

    convergence: Convergence
    ratings: Ratings
    memory: Memory


def _stands(work: Sequence[Contribution]) -> list[convergence_pb2.Stand]:
    return [
        convergence_pb2.Stand(agent_id=each.agent, position=each.position, text=each.text[:_READ_CHARACTERS])
        for each in work
    ]


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
