"""The round of proposals: all are asked at once, or the best first until what they say is probable enough."""

from collections.abc import Mapping, Sequence
from typing import Final

from parley.orchestrator.formats.arena.discussion import PROPOSAL_ROUND, Discussion, Made, contributions
from parley.orchestrator.formats.arena.stops import Found, found_probable
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.stopping import asking_order
from parley.orchestrator.phases import propose
from parley.orchestrator.phases.agreement import FIRST_DRAFT_VOTE, draft_groups, state_positions
from parley.orchestrator.phases.count_votes import VoteTerms
from parley.orchestrator.phases.progress import PhaseMarks
from parley.orchestrator.phases.propose import hold_quorum, no_proposal_in_time
from parley.orchestrator.phases.situation import Situation
from parley.orchestrator.phases.vote import vote_weights
from parley.v1.arena_pb2 import DUTY_PROPOSER
from parley.v1.debate_pb2 import STOP_REASON_PROBABLE_ENOUGH
from parley.v1.event_pb2 import RoundAssessed, RoundsEnded, StepFailed
from parley.v1.voting_pb2 import VOTE_WEIGHTS_ACCURACY

__all__ = ["hold_proposals"]

_ASKING: Final = VoteTerms(
    weighted_by=VOTE_WEIGHTS_ACCURACY, key=f"round/{PROPOSAL_ROUND}/asking", round=PROPOSAL_ROUND
)
"""How agents are weighed that are asked one after the other: by the log-odds of being right, which a posterior is made of."""


async def hold_proposals(arena: Discussion) -> RoundsEnded | None:
    """Ask proposers for their proposals; return why no round follows, None where one does."""
    await arena.steer(PROPOSAL_ROUND)
    arena.enter("GENERATING_PROPOSALS")
    authors = arena.agents(DUTY_PROPOSER)
    ended = None
    async with arena.round(PROPOSAL_ROUND):
        if arena.settings.stopping.sequential:
            ended = await _propose_in_turn(arena, authors)
        else:
            await _propose_at_once(arena, authors)
    arena.enter("PROPOSALS_COMPLETE")
    return ended


async def _propose_at_once(arena: Discussion, authors: Sequence[AgentSpec]) -> None:
    situation = arena.situation(PROPOSAL_ROUND)
    asked = [propose.propose(arena.debate, each, None, situation) for each in authors]
    made = await arena.all_of(propose.PROPOSAL, PROPOSAL_ROUND, asked)
    _check_proposals(arena, dict(zip((each.id for each in authors), made, strict=True)))
    await _record(arena, made)


async def _propose_in_turn(arena: Discussion, authors: Sequence[AgentSpec]) -> RoundsEnded | None:
    """Ask the best rated first, and the next ones only while no position is probable enough."""
    weights = await vote_weights(arena.debate, authors, _ASKING)
    situation = arena.situation(PROPOSAL_ROUND)
    marks = PhaseMarks(arena.debate, PROPOSAL_ROUND, propose.PROPOSAL, len(authors))
    made: dict[str, Made] = {}
    ended = None
    for group in asking_order(weights, [each.id for each in authors]):
        asked = await arena.together([_marked(arena, marks, arena.by_id[each], situation) for each in group])
        made |= zip(group, asked, strict=True)
        await _record(arena, asked)
        ended = await _probable_enough(arena, weights, [each.id for each in authors if each.id not in made])
        if ended is not None:
            break
    for _ in range(len(authors) - len(made)):
        marks.end()
    _check_proposals(arena, made)
    return ended


async def _marked(arena: Discussion, marks: PhaseMarks, author: AgentSpec, situation: Situation) -> Made:
    marks.begin()
    made = await propose.propose(arena.debate, author, None, situation)
    marks.end()
    return made


async def _record(arena: Discussion, made: Sequence[Made]) -> None:
    for each in await state_positions(arena.debate, PROPOSAL_ROUND, contributions(made)):
        arena.record.propose(each)


async def _probable_enough(
    arena: Discussion, weights: Mapping[str, float], left: Sequence[str]
) -> RoundsEnded | None:
    """Return that no round follows, and leave out who was not asked, where a position is probable enough."""
    work = arena.works()
    if len(work) < 2:
        return None
    drafts = await draft_groups(arena.debate, work, f"{FIRST_DRAFT_VOTE.name}/of-{len(work)}")
    found = Found(holds=False, finding="what the first drafts hold could not be told")
    if not isinstance(drafts, StepFailed):
        found = found_probable(drafts, weights, arena.settings.stopping)
    finding = f"{found.finding}; not asked: {', '.join(left)}" if found.holds and left else found.finding
    arena.debate.record_event(
        f"{_ASKING.key}/of-{len(work)}/finding",
        RoundAssessed(round=PROPOSAL_ROUND, ends_rounds=found.holds, finding=finding),
    )
    if not found.holds:
        return None
    arena.not_asked = frozenset(left)
    return RoundsEnded(reason=STOP_REASON_PROBABLE_ENOUGH, explanation=finding)


def _check_proposals(arena: Discussion, made: Mapping[str, Made]) -> None:
    hold_quorum(arena.debate, PROPOSAL_ROUND, made)
    if arena.debate.ending and not any(isinstance(each, Contribution) for each in made.values()):
        raise no_proposal_in_time(arena.debate, made)
