"""The rules that end an arena's rounds: what each finds, and in which order they are asked after a round."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from parley.orchestrator.formats.arena.discussion import CRITIQUE_ROUND, PROPOSAL_ROUND, Discussion
from parley.orchestrator.formats.arena.judge import grouping_agent, judge_of
from parley.orchestrator.formats.arena.trickster import challenge_if_hollow
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.readiness import Readiness
from parley.orchestrator.model.stopping import is_unanimous, posterior
from parley.orchestrator.phases.agreement import assess_agreement, record_finding
from parley.orchestrator.phases.assess import find_end_by_judge
from parley.v1.arena_pb2 import StoppingSettings
from parley.v1.convergence_pb2 import AssessResponse
from parley.v1.debate_pb2 import (
    STOP_REASON_AGENTS_READY,
    STOP_REASON_CONFIDENCE_REACHED,
    STOP_REASON_STABLE_POSITIONS,
    STOP_REASON_UNANIMOUS_DRAFTS,
    DraftGroups,
    StopReason,
)
from parley.v1.event_pb2 import RoundAssessed, RoundsEnded

CONFIDENCE_QUORUM: Final = 0.75
"""The share of the agents that must say how sure they are, for their average to count."""


def unanimity_finding(drafts: DraftGroups) -> RoundAssessed:
    """Return whether all first drafts take the same position beyond doubt."""
    groups = [str(place) for place, group in enumerate(drafts.groups) for _ in group.agent_ids]
    if not drafts.certain:
        return RoundAssessed(finding="whether the first drafts agree cannot be told")
    if not is_unanimous(groups):
        return RoundAssessed(finding=f"the first drafts take {len(drafts.groups)} positions")
    return RoundAssessed(ends_rounds=True, finding=f"all {len(groups)} first drafts take the same position")


def probability_finding(
    drafts: DraftGroups, weights: Mapping[str, float], stopping: StoppingSettings
) -> RoundAssessed:
    """Return whether what agents of such weights hold is probable enough, so that no other agent need be asked."""
    if not drafts.certain:
        return RoundAssessed(finding="which first drafts agree cannot be told")
    groups = {agent: str(place) for place, group in enumerate(drafts.groups) for agent in group.agent_ids}
    place, probable = max(posterior(groups, weights).items(), key=lambda each: (each[1], each[0]))
    percent, threshold = 100 * probable, stopping.sequential_percent
    return RoundAssessed(
        ends_rounds=percent >= threshold,
        finding=(
            f"the position of {', '.join(drafts.groups[int(place)].agent_ids)} is {percent:.0f} % probable"
            f" (threshold {threshold} %)"
        ),
    )


def stability_finding(shifted: float | None, stopping: StoppingSettings) -> RoundAssessed:
    """Return whether who holds which position has hardly changed; `track_shift` is 0 to 1, None if it is not known."""
    if shifted is None:
        return RoundAssessed(finding="whether the agents have changed their positions cannot be told")
    percent, threshold = 100 * shifted, stopping.stable_positions_percent
    return RoundAssessed(
        ends_rounds=percent <= threshold,
        finding=f"who holds which position has changed by {percent:.0f} % since the round before (threshold {threshold} %)",
    )


def readiness_finding(said: Sequence[Readiness], agents: int, stopping: StoppingSettings) -> RoundAssessed:
    """Return whether enough of so many agents are ready and sure enough; who says nothing is not."""
    least = stopping.ready_confidence_percent / 100
    ready = sum(
        each.ready is True and each.confidence is not None and each.confidence >= least for each in said
    )
    return RoundAssessed(
        ends_rounds=agents > 0 and ready * 100 >= stopping.ready_share_percent * agents,
        finding=(
            f"{ready} of {agents} agents are ready for the vote and at least {stopping.ready_confidence_percent} % sure "
            f"(threshold {stopping.ready_share_percent} % of them)"
        ),
    )


def confidence_finding(said: Sequence[Readiness], agents: int, stopping: StoppingSettings) -> RoundAssessed:
    """Return whether the agents are sure enough on average; it cannot hold if too few of so many say how sure they are."""
    sure = [each.confidence for each in said if each.confidence is not None]
    if not sure or len(sure) < CONFIDENCE_QUORUM * agents:
        return RoundAssessed(finding=f"only {len(sure)} of {agents} agents say how sure they are")
    average = 100 * sum(sure) / len(sure)
    threshold = stopping.confidence_threshold_percent
    return RoundAssessed(
        ends_rounds=average >= threshold,
        finding=f"the agents are {average:.0f} % sure on average (threshold {threshold} %)",
    )


async def find_end_by_drafts(arena: Discussion) -> RoundsEnded | None:
    """Return why no round follows the proposals, since all take the same position; None if rounds follow.

    They follow too if the trickster challenges what all say.
    """
    if not arena.settings.stopping.unanimous_drafts or len(arena.works()) < 2:
        return None
    drafts = await arena.get_draft_groups()
    if drafts is None:
        return None
    found = unanimity_finding(drafts)
    ended = _record_finding(arena, PROPOSAL_ROUND, "drafts", STOP_REASON_UNANIMOUS_DRAFTS, found)
    if ended is not None and await challenge_if_hollow(arena, PROPOSAL_ROUND, ended):
        return None
    return ended


async def find_end_by_rules(
    arena: Discussion, number: int, before: Sequence[Contribution]
) -> RoundsEnded | None:
    """Return why the rounds end after this one, by the first rule that holds; None if they go on.

    An agreement that the trickster challenges ends nothing.
    """
    for rule in _RULES:
        if number >= rule.first_round and rule.is_on(arena):
            ended = await rule.check(arena, number, before)
            if ended is not None:
                return None if await challenge_if_hollow(arena, number, ended) else ended
    return None


class _Rule(Struct, frozen=True):
    """A rule that ends the rounds of revision.

    Attributes:
        name: Of the rule, as its findings are keyed.
        first_round: The first round after which it is looked at.
        is_on: Whether the debate goes by it.
        check: Returns why the rounds end; None if they go on. It gets the number of the round, and the texts before it.
    """

    name: str
    first_round: int
    is_on: Callable[[Discussion], bool]
    check: Callable[[Discussion, int, Sequence[Contribution]], Awaitable[RoundsEnded | None]]


def _record_finding(
    arena: Discussion, number: int, rule: str, reason: StopReason.ValueType, found: RoundAssessed
) -> RoundsEnded | None:
    """Record what a rule has found, and return why the rounds end if it holds."""
    found.round = number
    arena.debate.record_event(f"round/{number}/{rule}/finding", found)
    return RoundsEnded(reason=reason, explanation=found.finding) if found.ends_rounds else None


async def _check_agreement(
    arena: Discussion, number: int, before: Sequence[Contribution]
) -> RoundsEnded | None:
    assessed = await _assess_once(arena, number, before)
    if assessed is None:
        return None
    return record_finding(
        arena.debate, number, assessed, arena.settings.stopping.convergence_threshold_percent
    )


async def _check_stability(
    arena: Discussion, number: int, before: Sequence[Contribution]
) -> RoundsEnded | None:
    if number == CRITIQUE_ROUND + 1:
        arena.positions.start(await arena.get_draft_groups())
    assessed = await _assess_once(arena, number, before)
    found = stability_finding(
        arena.positions.track_shift(number, arena.works(), assessed), arena.settings.stopping
    )
    return _record_finding(arena, number, "stability", STOP_REASON_STABLE_POSITIONS, found)


async def _assess_once(
    arena: Discussion, number: int, before: Sequence[Contribution]
) -> AssessResponse | None:
    """Return what is said of a round's agreement, which is asked once."""
    if number not in arena.assessments:
        stopping = arena.settings.stopping
        arena.assessments[number] = await assess_agreement(
            arena.debate,
            number,
            arena.works(),
            before,
            stopping.convergence_threshold_percent,
            arena.transcript.critiques_of(number),
            partial(grouping_agent, arena),
            asks_all=stopping.stable_positions,
        )
    return arena.assessments[number]


async def _check_readiness(
    arena: Discussion, number: int, _before: Sequence[Contribution]
) -> RoundsEnded | None:
    work = arena.works()
    found = readiness_finding([each.readiness for each in work], len(work), arena.settings.stopping)
    return _record_finding(arena, number, "ready", STOP_REASON_AGENTS_READY, found)


async def _check_confidence(
    arena: Discussion, number: int, _before: Sequence[Contribution]
) -> RoundsEnded | None:
    work = arena.works()
    found = confidence_finding([each.readiness for each in work], len(work), arena.settings.stopping)
    return _record_finding(arena, number, "confidence", STOP_REASON_CONFIDENCE_REACHED, found)


async def _check_with_judge(
    arena: Discussion, number: int, _before: Sequence[Contribution]
) -> RoundsEnded | None:
    issues, required = await arena.collect_issues(), arena.requirements.to_prompt_text()
    return await find_end_by_judge(arena.debate, judge_of(arena), number, arena.works(), issues, required)


_RULES: Final = (
    _Rule(
        "convergence",
        CRITIQUE_ROUND + 1,
        lambda arena: arena.settings.stopping.convergence and len(arena.works()) > 1,
        _check_agreement,
    ),
    _Rule(
        "stability",
        CRITIQUE_ROUND + 1,
        lambda arena: arena.settings.stopping.stable_positions and len(arena.works()) > 1,
        _check_stability,
    ),
    _Rule("ready", CRITIQUE_ROUND + 1, lambda arena: arena.settings.stopping.ready_signal, _check_readiness),
    _Rule(
        "confidence",
        CRITIQUE_ROUND + 1,
        lambda arena: bool(arena.settings.stopping.confidence_threshold_percent),
        _check_confidence,
    ),
    _Rule(
        "judge", CRITIQUE_ROUND, lambda arena: arena.settings.stopping.judge_termination, _check_with_judge
    ),
)
"""The rules that end the rounds of revision, in the order in which they are looked at. The last round ends them in any case."""
