"""The rules that end the rounds of revision, as a table: the first that holds ends them, and is recorded."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from parley.orchestrator.formats.arena.discussion import CRITIQUE_ROUND, PROPOSAL_ROUND, Discussion
from parley.orchestrator.formats.arena.judge import grouping_agent, judge_of
from parley.orchestrator.formats.arena.stops import (
    Found,
    found_confident,
    found_ready,
    found_stable,
    found_unanimous,
)
from parley.orchestrator.formats.arena.trickster import is_challenged
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.phases.agreement import assess_agreement, ended_by_agreement
from parley.orchestrator.phases.assess import judge_ends_rounds
from parley.v1.convergence_pb2 import AssessResponse
from parley.v1.debate_pb2 import (
    STOP_REASON_AGENTS_READY,
    STOP_REASON_CONFIDENCE_REACHED,
    STOP_REASON_STABLE_POSITIONS,
    STOP_REASON_UNANIMOUS_DRAFTS,
    StopReason,
)
from parley.v1.event_pb2 import (
    RoundAssessed,
    RoundsEnded,
)

__all__ = ["drafts_end_rounds", "rounds_end"]


async def drafts_end_rounds(arena: Discussion) -> RoundsEnded | None:
    """Return why no round is held after the proposals, since all take the same position; None where rounds are held.

    They are held too where the trickster challenges what all say.
    """
    if not arena.settings.stopping.unanimous_drafts or len(arena.works()) < 2:
        return None
    drafts = await arena.drafts()
    if drafts is None:
        return None
    found = found_unanimous(drafts)
    ended = _assessed(arena, PROPOSAL_ROUND, "drafts", STOP_REASON_UNANIMOUS_DRAFTS, found)
    if ended is not None and await is_challenged(arena, PROPOSAL_ROUND, ended):
        return None
    return ended


async def rounds_end(arena: Discussion, number: int, before: Sequence[Contribution]) -> RoundsEnded | None:
    """Return why the rounds end after this one, by the first rule that holds; None where they go on.

    An agreement that the trickster challenges ends nothing.
    """
    for rule in _RULES:
        if number >= rule.first_round and rule.is_on(arena):
            ended = await rule.holds(arena, number, before)
            if ended is not None:
                return None if await is_challenged(arena, number, ended) else ended
    return None


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule that ends the rounds of revision.

    Attributes:
        name: Of the rule, as its findings are keyed.
        first_round: The first round after which it is looked at.
        is_on: Tells whether the debate goes by it.
        holds: Returns why the rounds end; None where they go on. It is told the number of the round, and the texts before it.
    """

    name: str
    first_round: int
    is_on: Callable[[Discussion], bool]
    holds: Callable[[Discussion, int, Sequence[Contribution]], Awaitable[RoundsEnded | None]]


def _assessed(
    arena: Discussion, number: int, rule: str, reason: StopReason.ValueType, found: Found
) -> RoundsEnded | None:
    """Record what a rule has found, and return why the rounds end if it holds."""
    arena.debate.record_event(
        f"round/{number}/{rule}/finding",
        RoundAssessed(round=number, ends_rounds=found.holds, finding=found.finding),
    )
    return RoundsEnded(reason=reason, explanation=found.finding) if found.holds else None


async def _agree(arena: Discussion, number: int, before: Sequence[Contribution]) -> RoundsEnded | None:
    assessed = await _assessment(arena, number, before)
    if assessed is None:
        return None
    return ended_by_agreement(
        arena.debate, number, assessed, arena.settings.stopping.convergence_threshold_percent
    )


async def _are_stable(arena: Discussion, number: int, before: Sequence[Contribution]) -> RoundsEnded | None:
    if number == CRITIQUE_ROUND + 1:
        arena.positions.begin(await arena.drafts())
    assessed = await _assessment(arena, number, before)
    found = found_stable(arena.positions.shifted(number, arena.works(), assessed), arena.settings.stopping)
    return _assessed(arena, number, "stability", STOP_REASON_STABLE_POSITIONS, found)


async def _assessment(
    arena: Discussion, number: int, before: Sequence[Contribution]
) -> AssessResponse | None:
    """Return what is said of a round's agreement, which is asked once; an agent only where rounds end by agreement."""
    if number not in arena.assessed:
        stopping = arena.settings.stopping
        arena.assessed[number] = await assess_agreement(
            arena.debate,
            number,
            arena.works(),
            before,
            stopping.convergence_threshold_percent,
            arena.record.critiques_of(number),
            grouping_agent(arena) if stopping.convergence else None,
        )
    return arena.assessed[number]


async def _are_ready(arena: Discussion, number: int, _before: Sequence[Contribution]) -> RoundsEnded | None:
    work = arena.works()
    found = found_ready([each.readiness for each in work], len(work), arena.settings.stopping)
    return _assessed(arena, number, "ready", STOP_REASON_AGENTS_READY, found)


async def _are_confident(
    arena: Discussion, number: int, _before: Sequence[Contribution]
) -> RoundsEnded | None:
    work = arena.works()
    found = found_confident([each.readiness for each in work], len(work), arena.settings.stopping)
    return _assessed(arena, number, "confidence", STOP_REASON_CONFIDENCE_REACHED, found)


async def _judge_says_so(
    arena: Discussion, number: int, _before: Sequence[Contribution]
) -> RoundsEnded | None:
    issues, required = await arena.issues(), arena.requirements.told()
    return await judge_ends_rounds(arena.debate, judge_of(arena), number, arena.works(), issues, required)


_RULES: Final = (
    _Rule(
        "convergence",
        CRITIQUE_ROUND + 1,
        lambda arena: arena.settings.stopping.convergence and len(arena.works()) > 1,
        _agree,
    ),
    _Rule(
        "stability",
        CRITIQUE_ROUND + 1,
        lambda arena: arena.settings.stopping.stable_positions and len(arena.works()) > 1,
        _are_stable,
    ),
    _Rule("ready", CRITIQUE_ROUND + 1, lambda arena: arena.settings.stopping.ready_signal, _are_ready),
    _Rule(
        "confidence",
        CRITIQUE_ROUND + 1,
        lambda arena: bool(arena.settings.stopping.confidence_threshold_percent),
        _are_confident,
    ),
    _Rule("judge", CRITIQUE_ROUND, lambda arena: arena.settings.stopping.judge_termination, _judge_says_so),
)
"""The rules that end the rounds of revision, in the order in which they are looked at. The last round ends them in any case."""
