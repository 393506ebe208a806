"""ConvergenceService over gRPC: protobuf in and out, requests checked, nothing decided."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any, Final

import grpc

from parley.convergence.assessment import Thresholds, Verdict
from parley.convergence.embeddings import Embeddings
from parley.convergence.grouping import Contradiction
from parley.convergence.rounds import Rounds
from parley.convergence.stands import Stand
from parley.runtime.errors import FieldViolation, invalid_argument
from parley.v1 import convergence_pb2 as pb
from parley.v1 import convergence_pb2_grpc as pb_grpc

__all__ = ["ConvergenceServicer"]

Context = grpc.aio.ServicerContext[Any, Any]

_MOST_CHARACTERS: Final = 100_000
_MOST_POSITION: Final = 2_000
_MOST_AGENTS: Final = 32
_IN_FLIGHT: Final = 32
"""Texts of one Embed stream that are read before their vectors are sent."""

_VERDICTS: Final = {
    Verdict.CONVERGED: pb.CONVERGENCE_VERDICT_CONVERGED,
    Verdict.STABLE_DISAGREEMENT: pb.CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    Verdict.CONTINUING: pb.CONVERGENCE_VERDICT_CONTINUING,
}


class ConvergenceServicer(pb_grpc.ConvergenceServiceServicer):
    """Answers the calls of ConvergenceService."""

    def __init__(self, fine: Embeddings, fast: Embeddings) -> None:
        self._fine = fine
        self._fast = fast
        self._rounds = Rounds(fine, fast)

    async def Embed(  # noqa: N802
        self, request_iterator: AsyncIterable[pb.EmbedRequest], _context: Context
    ) -> AsyncIterator[pb.EmbedResponse]:
        """Embeds texts as they come and answers in their order."""
        waiting: asyncio.Queue[asyncio.Task[pb.EmbedResponse] | None] = asyncio.Queue(_IN_FLIGHT)
        begun: set[asyncio.Task[pb.EmbedResponse]] = set()

        async def read() -> None:
            async for request in request_iterator:
                task = asyncio.create_task(self._embed(request))
                begun.add(task)
                task.add_done_callback(begun.discard)
                await waiting.put(task)
            await waiting.put(None)

        reading = asyncio.create_task(read())
        try:
            while (task := await waiting.get()) is not None:
                yield await task
        finally:
            stopped = [reading, *begun]
            for each in stopped:
                each.cancel()
            await asyncio.gather(*stopped, return_exceptions=True)

    async def _embed(self, request: pb.EmbedRequest) -> pb.EmbedResponse:
        violations = list(_text_violations("text", request.text))
        if request.model not in pb.EmbeddingModel.values():
            violations.append(FieldViolation("model", f"{request.model} is none of the known models"))
        if violations:
            raise invalid_argument(violations)
        embeddings = self._fast if request.model == pb.EMBEDDING_MODEL_FAST else self._fine
        vector = await embeddings.one(request.text)
        return pb.EmbedResponse(vector=vector.tolist(), model=embeddings.name)

    async def Assess(self, request: pb.AssessRequest, _context: Context) -> pb.AssessResponse:  # noqa: N802
        """Assesses a round."""
        _refuse(
            *_text_violations("question", request.question),
            *_stand_violations("stands", request.stands, least=2),
            *_stand_violations("previous", request.previous, least=0),
            *_critic_violations(request),
            *_percent_violations(request),
        )
        defaults = Thresholds()
        assessment = await self._rounds.assess(
            request.question,
            _stands(request.stands),
            _stands(request.previous),
            [each.agrees for each in request.critics],
            Thresholds(
                agreement=request.agreement_threshold_percent or defaults.agreement,
                stability=request.stability_threshold_percent or defaults.stability,
                novelty=request.novelty_threshold_percent or defaults.novelty,
            ),
        )
        return pb.AssessResponse(
            verdict=_VERDICTS[assessment.verdict],
            agreement_percent=assessment.agreement,
            position_agreement_percent=assessment.position_agreement,
            text_agreement_percent=assessment.text_agreement,
            critic_agreement_percent=assessment.critic_agreement,
            stability=[
                pb.AgentStability(agent_id=agent_id, stability_percent=percent)
                for agent_id, percent in sorted(assessment.stability.items())
            ],
            novelty_percent=assessment.novelty,
            contradictions=_contradictions(assessment.contradictions),
            reason=assessment.reason,
        )

    async def GroupPositions(  # noqa: N802
        self, request: pb.GroupPositionsRequest, _context: Context
    ) -> pb.GroupPositionsResponse:
        """Groups agents by position."""
        _refuse(
            *_text_violations("question", request.question),
            *_stand_violations("stands", request.stands, least=1),
        )
        grouping = await self._rounds.group(request.question, _stands(request.stands))
        return pb.GroupPositionsResponse(
            groups=[
                pb.PositionGroup(
                    agent_ids=each.agent_ids,
                    representative_agent_id=each.representative,
                    position=each.position,
                )
                for each in grouping.groups
            ],
            majority=2 * len(grouping.groups[0].agent_ids) > len(request.stands),
            contradictions=_contradictions(grouping.contradictions),
        )


def _stands(stands: Iterable[pb.Stand]) -> list[Stand]:
    return [Stand(each.agent_id, each.position, each.text) for each in stands]


def _contradictions(found: Iterable[Contradiction]) -> list[pb.Contradiction]:
    return [
        pb.Contradiction(agent_id=each.one, other_agent_id=each.other, reason=each.reason) for each in found
    ]


def _refuse(*violations: FieldViolation) -> None:
    if violations:
        raise invalid_argument(violations)


def _text_violations(field: str, text: str) -> Iterable[FieldViolation]:
    if not text.strip():
        yield FieldViolation(field, "is blank")
    elif len(text) > _MOST_CHARACTERS:
        yield FieldViolation(field, f"has {len(text)} characters, at most {_MOST_CHARACTERS} are allowed")


def _stand_violations(field: str, stands: "Iterable[pb.Stand]", *, least: int) -> Iterable[FieldViolation]:
    listed = list(stands)
    if not least <= len(listed) <= _MOST_AGENTS:
        yield FieldViolation(field, f"has {len(listed)} agents, {least} to {_MOST_AGENTS} are allowed")
    seen: set[str] = set()
    for place, stand in enumerate(listed):
        path = f"{field}[{place}]"
        if not stand.agent_id:
            yield FieldViolation(f"{path}.agent_id", "is empty")
        elif stand.agent_id in seen:
            yield FieldViolation(f"{path}.agent_id", f"{stand.agent_id!r} is there twice")
        seen.add(stand.agent_id)
        if not stand.position.strip() and not stand.text.strip():
            yield FieldViolation(path, "has neither position nor text")
        if len(stand.position) > _MOST_POSITION:
            yield FieldViolation(f"{path}.position", f"is longer than {_MOST_POSITION} characters")
        if len(stand.text) > _MOST_CHARACTERS:
            yield FieldViolation(f"{path}.text", f"is longer than {_MOST_CHARACTERS} characters")


def _critic_violations(request: pb.AssessRequest) -> Iterable[FieldViolation]:
    for place, each in enumerate(request.critics):
        for name, value in (
            ("critic_agent_id", each.critic_agent_id),
            ("target_agent_id", each.target_agent_id),
        ):
            if not value:
                yield FieldViolation(f"critics[{place}].{name}", "is empty")


def _percent_violations(request: pb.AssessRequest) -> Iterable[FieldViolation]:
    for name in ("agreement_threshold_percent", "stability_threshold_percent", "novelty_threshold_percent"):
        value = getattr(request, name)
        if not 0 <= value <= 100:
            yield FieldViolation(name, f"is {value}, must be 1 to 100, or 0 for the default")
