"""What an arena's debate changed: the decision, its ballots and the last vote, by the positions that they are for."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from parley.orchestrator.formats.arena.decision import MadeDecision
from parley.orchestrator.formats.arena.discussion import Discussion
from parley.orchestrator.model.effect import Ballots
from parley.orchestrator.model.stands import Stand
from parley.orchestrator.phases.effect import NamedPositions, describe_effect, word_of
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import AnswerDetails
from parley.v1.effect_pb2 import DebateEffect
from parley.v1.voting_pb2 import VOTE_BALLOTS_FIRST_DRAFTS, Decision, Vote


def describe_effect_of_decision(
    arena: Discussion,
    judge: Agent,
    stands: Sequence[Stand],
    named: NamedPositions,
    details: AnswerDetails,
    made: MadeDecision | None,
    votes: Sequence[Vote],
) -> DebateEffect:
    """Return what the debate changed. What was decided counts, and not what the answer says; without a decision, the answer does."""
    first = {stand.agent: named.names.get(stand.words) for stand in reversed(stands)}
    last = {stand.agent: named.names.get(stand.words) for stand in stands}
    if made is not None:
        decided = _find_decided_position(made.decision, first, last)
        _warn_of_other_answer(arena, named.answer, decided)
        named = replace(named, answer=decided)
    ballots = replace(
        _count_ballots(made, first, last),
        last_vote=[
            position
            for vote in votes[-1:]
            for each in vote.ballots
            if (position := last.get(each.choice_agent_id)) is not None
        ],
    )
    kind = arena.requirements.kind
    return describe_effect(arena.debate, judge, stands, named, kind, word_of(details), ballots)


def _warn_of_other_answer(arena: Discussion, taken: str | None, decided: str | None) -> None:
    """Warn if the answer takes a position of an agent that is known not to be the one that was decided for."""
    if taken and decided and taken != decided:
        message = f"the answer takes another position than was decided for: “{taken}”, and not “{decided}”"
        arena.debate.warn("answer-position", message)


def _find_decided_position(
    decision: Decision, first: Mapping[str, str | None], last: Mapping[str, str | None]
) -> str | None:
    """Return the position that was decided for; None if it is not known."""
    core = decision.core_agent_id
    if decision.ballots != VOTE_BALLOTS_FIRST_DRAFTS:
        return last.get(core)
    for each in decision.positions:
        holders = each.first_agent_ids if decision.core_is_first_draft else each.last_agent_ids
        if core in holders and each.first_agent_ids:
            return first.get(each.first_agent_ids[0])
    return None


def _count_ballots(
    made: MadeDecision | None, first: Mapping[str, str | None], last: Mapping[str, str | None]
) -> Ballots:
    """Return the judge's ballot, and what agents weigh by the log-odds of being right."""
    if made is None or not made.decision.HasField("judge_ballot"):
        return Ballots(weights=made.odds if made else {})
    decision = made.decision
    held = first if decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS else last
    choice = held.get(decision.judge_ballot.choice_agent_id)
    return Ballots(choice, decision.judge_ballot.weight, made.odds)
