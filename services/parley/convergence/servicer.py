"""ConvergenceService over gRPC: checks requests and converts messages, without logic of its own."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Any, Final

import grpc

from parley.convergence.agreement import Agreements, Pair, Relation, words_key
from parley.convergence.assessment import Critic, Thresholds, Verdict
from parley.convergence.embeddings import AskedText, Embeddings
from parley.convergence.grouping import Reading
from parley.convergence.rounds import IS_SAME, Rounds
from parley.convergence.support import SupportModel
from parley.runtime.errors import failed_precondition
from parley.runtime.validation import Violations
from parley.v1 import convergence_pb2 as pb
from parley.v1 import convergence_pb2_grpc as pb_grpc

Context = grpc.aio.ServicerContext[Any, Any]

_MAX_CHARACTERS: Final = 100_000
_MAX_POSITION: Final = 2_000
_MAX_AGENTS: Final = 32
_MAX_PAIRS: Final = 512
_MAX_CLAIMS: Final = 12
_MAX_TEXTS: Final = 100
_IN_FLIGHT: Final = 32
"""The maximum number of texts of one Embed stream that are read before their vectors are sent."""

_VERDICTS: Final = {
    Verdict.CONVERGED: pb.CONVERGENCE_VERDICT_CONVERGED,
    Verdict.STABLE_DISAGREEMENT: pb.CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    Verdict.CONTINUING: pb.CONVERGENCE_VERDICT_CONTINUING,
    Verdict.REFINING: pb.CONVERGENCE_VERDICT_REFINING,
    Verdict.DIVERGING: pb.CONVERGENCE_VERDICT_DIVERGING,
    Verdict.UNDETERMINED: pb.CONVERGENCE_VERDICT_UNDETERMINED,
}


class ConvergenceServicer(pb_grpc.ConvergenceServiceServicer):
    """The calls of ConvergenceService."""

    def __init__(
        self, fine: Embeddings, fast: Embeddings, agreements: Agreements, support: SupportModel | None = None
    ) -> None:
        self._fine = fine
        self._fast = fast
        self._rounds = Rounds(fast, agreements)
        self._support = support

    async def Embed(  # noqa: N802
        self, request_iterator: AsyncIterable[pb.EmbedRequest], _context: Context
    ) -> AsyncIterator[pb.EmbedResponse]:
        """Embed texts as they arrive and answer in their order."""
        room = asyncio.Semaphore(_IN_FLIGHT)
        asked: deque[tuple[AskedText, str]] = deque()
        came = asyncio.Event()

        async def read() -> None:
            async for request in request_iterator:
                await room.acquire()
                _check_embed(request)
                embeddings = self._fast if request.model == pb.EMBEDDING_MODEL_FAST else self._fine
                asked.append((embeddings.ask(request.text), embeddings.name))
                came.set()

        reading = asyncio.create_task(read())
        reading.add_done_callback(lambda _: came.set())  # however it ended
        try:
            while asked or not reading.done():
                if asked:
                    text, model = asked[0]
                    vector = await text.wait()
                    yield pb.EmbedResponse(vector=vector.tolist(), model=model)
                    asked.popleft()[0].leave()
                    room.release()
                else:
                    came.clear()
                    await came.wait()
            await reading
        finally:
            for text, _ in asked:
                text.leave()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def Assess(self, request: pb.AssessRequest, _context: Context) -> pb.AssessResponse:  # noqa: N802
        """Assess a round."""
        _check_assess(request)
        defaults = Thresholds()
        assessment = await self._rounds.assess(
            request.question,
            request.positions,
            request.previous,
            [Critic(each.critic_agent_id, each.target_agent_id, each.agrees) for each in request.critics],
            Thresholds(
                agreement=request.agreement_threshold_percent or defaults.agreement,
                novelty=request.novelty_threshold_percent or defaults.novelty,
            ),
            _decisions(request.settled),
        )
        return pb.AssessResponse(
            verdict=_VERDICTS[assessment.verdict],
            agreement_percent=assessment.agreement,
            position_agreement_percent=assessment.position_agreement,
            text_agreement_percent=assessment.text_agreement,
            critic_agreement_percent=assessment.critic_agreement,
            stability=[
                pb.AgentStability(agent_id=agent_id, kept=kept) for agent_id, kept in assessment.kept.items()
            ],
            novelty_percent=assessment.novelty,
            contradictions=_contradictions(assessment.reading),
            reason=assessment.reason,
            unsure=_unsure_pairs(assessment.reading),
        )

    async def GroupPositions(  # noqa: N802
        self, request: pb.GroupPositionsRequest, _context: Context
    ) -> pb.GroupPositionsResponse:
        """Group agents by position."""
        _check_group(request)
        grouping, reading = await self._rounds.group(request.positions, _decisions(request.settled))
        return pb.GroupPositionsResponse(
            groups=[
                pb.PositionGroup(
                    agent_ids=each.agent_ids,
                    representative_agent_id=each.representative,
                    position=each.position,
                )
                for each in grouping.groups
            ],
            majority=grouping.has_majority,
            contradictions=_contradictions(reading),
            certain=grouping.certain,
            unsure=_unsure_pairs(reading),
        )

    async def ComparePositions(  # noqa: N802
        self, request: pb.ComparePositionsRequest, _context: Context
    ) -> pb.ComparePositionsResponse:
        """Compare pairs of positions."""
        _check_compare(request)
        relations = await self._rounds.compare(
            [(each.position, each.other_position) for each in request.pairs]
        )
        return pb.ComparePositionsResponse(pairs=[pb.ComparedPair(same=IS_SAME[each]) for each in relations])

    async def FindSupport(  # noqa: N802
        self, request: pb.FindSupportRequest, _context: Context
    ) -> pb.FindSupportResponse:
        """Find what supports claims."""
        _check_find_support(request)
        if self._support is None:
            raise failed_precondition(
                "NO_SUPPORT_MODEL",
                "no local model tells what supports a claim; PARLEY_SUPPORT_HEAD names one",
            )
        found = await self._support.find(request.claims, request.texts)
        return pb.FindSupportResponse(
            claims=[pb.ClaimSupport(probability=each.probability, texts=each.texts) for each in found]
        )


def _decisions(pairs: Iterable[pb.SettledPair]) -> dict[Pair, bool]:
    """Return what was decided of each pair of words; one of which both is said is left out."""
    said: dict[Pair, set[bool]] = {}
    for each in pairs:
        said.setdefault(words_key(each.position, each.other_position), set()).add(each.same)
    return {pair: True in found for pair, found in said.items() if len(found) == 1}


def _contradictions(reading: Reading) -> list[pb.Contradiction]:
    return [
        pb.Contradiction(
            agent_id=one, other_agent_id=other, reason=_apart_reason(reading.probabilities[one, other])
        )
        for one, other in reading.pairs(Relation.APART)
    ]


def _apart_reason(probability: float | None) -> str:
    words = "cannot be told" if probability is None else f"{100 * probability:.0f} %"
    return f"not the same answer (probability of the same answer: {words})"


def _unsure_pairs(reading: Reading) -> list[pb.UnsurePair]:
    return [
        pb.UnsurePair(agent_id=one, other_agent_id=other, same_probability=reading.probabilities[one, other])
        for one, other in reading.pairs(Relation.UNSURE)
    ]


def _check_embed(request: pb.EmbedRequest) -> None:
    violations = Violations()
    violations.check_text("text", request.text, max_characters=_MAX_CHARACTERS)
    violations.check(
        that=request.model in pb.EmbeddingModel.values(),
        field="model",
        otherwise=f"{request.model} is none of the known models",
    )
    violations.refuse()


def _check_assess(request: pb.AssessRequest) -> None:
    violations = Violations()
    violations.check_text("question", request.question, max_characters=_MAX_CHARACTERS)
    _check_stands(violations, "positions", request.positions, minimum=2)
    _check_stands(violations, "previous", request.previous, minimum=0)
    _check_critics(violations, request.critics)
    _check_settled(violations, request)
    for name in ("agreement_threshold_percent", "novelty_threshold_percent"):
        violations.check_setting(name, getattr(request, name), 100)
    violations.refuse()


def _check_critics(violations: Violations, critics: Sequence[pb.CriticVerdict]) -> None:
    seen: set[tuple[str, str]] = set()
    for place, each in enumerate(critics):
        path = f"critics[{place}]"
        for name in ("critic_agent_id", "target_agent_id"):
            violations.check(that=bool(getattr(each, name)), field=f"{path}.{name}", otherwise="is empty")
        pair = (each.critic_agent_id, each.target_agent_id)
        violations.check(that=pair not in seen, field=path, otherwise="is there twice")
        violations.check(
            that=not pair[0] or len(set(pair)) == 2, field=path, otherwise="is of one's own work"
        )
        seen.add(pair)


def _check_settled(violations: Violations, request: pb.AssessRequest | pb.GroupPositionsRequest) -> None:
    stands = [*request.positions, *(request.previous if isinstance(request, pb.AssessRequest) else ())]
    stated = {each.position for each in stands if each.position}
    for place, each in enumerate(request.settled):
        violations.check(
            that=stated >= {each.position, each.other_position},
            field=f"settled[{place}]",
            otherwise="must hold two positions of the request",
        )


def _check_group(request: pb.GroupPositionsRequest) -> None:
    violations = Violations()
    violations.check_text("question", request.question, max_characters=_MAX_CHARACTERS)
    _check_stands(violations, "positions", request.positions, minimum=1)
    _check_settled(violations, request)
    violations.refuse()


def _check_compare(request: pb.ComparePositionsRequest) -> None:
    violations = Violations()
    count = len(request.pairs)
    violations.check(
        that=0 < count <= _MAX_PAIRS, field="pairs", otherwise=f"has {count}, 1 to {_MAX_PAIRS} are allowed"
    )
    for place, each in enumerate(request.pairs):
        for name in ("position", "other_position"):
            length = len(getattr(each, name))
            violations.check(
                that=length <= _MAX_POSITION,
                field=f"pairs[{place}].{name}",
                otherwise=f"has {length} characters, at most {_MAX_POSITION} are allowed",
            )
    violations.refuse()


def _check_find_support(request: pb.FindSupportRequest) -> None:
    violations = Violations()
    for name, most in (("claims", _MAX_CLAIMS), ("texts", _MAX_TEXTS)):
        count = len(getattr(request, name))
        violations.check(
            that=0 < count <= most, field=name, otherwise=f"has {count}, 1 to {most} are allowed"
        )
    for place, each in enumerate(request.claims[:_MAX_CLAIMS]):
        violations.check_text(f"claims[{place}]", each, max_characters=_MAX_POSITION)
    for place, each in enumerate(request.texts[:_MAX_TEXTS]):
        violations.check(
            that=len(each) <= _MAX_CHARACTERS,
            field=f"texts[{place}]",
            otherwise=f"is longer than {_MAX_CHARACTERS} characters",
        )
    violations.refuse()


def _check_stands(
    violations: Violations, field: str, stands: Sequence[pb.AgentPosition], *, minimum: int
) -> None:
    violations.check_agent_count(field, len(stands), minimum=minimum, maximum=_MAX_AGENTS)
    seen: set[str] = set()
    for place, stand in enumerate(stands):
        path = f"{field}[{place}]"
        if stand.agent_id:
            violations.check_new(f"{path}.agent_id", stand.agent_id, seen)
        else:
            violations.add(f"{path}.agent_id", "is empty")
        violations.check(
            that=bool(stand.position.strip() or stand.text.strip()),
            field=path,
            otherwise="has neither position nor text",
        )
        for name, maximum in (("position", _MAX_POSITION), ("text", _MAX_CHARACTERS)):
            fits = len(getattr(stand, name)) <= maximum
            violations.check(
                that=fits, field=f"{path}.{name}", otherwise=f"is longer than {maximum} characters"
            )
