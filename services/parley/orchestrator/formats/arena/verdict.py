"""What an arena decided, in plain sentences: who chose it, how clearly, and who disagrees."""

from collections.abc import Iterator, Sequence

from parley.orchestrator.engine.format import NOT_ASKED, Verdict
from parley.orchestrator.formats.arena.outcome import describe_tie
from parley.orchestrator.model.effect_text import count_of
from parley.orchestrator.model.names import names_of
from parley.orchestrator.phases.count_votes import (
    count_votes_for,
    describe_minority,
    describe_result,
    strength_name,
)
from parley.runtime.agent_names import Names
from parley.v1.arena_pb2 import ArenaOutcome
from parley.v1.debate_pb2 import Debate
from parley.v1.voting_pb2 import (
    VOTE_BALLOTS_FIRST_DRAFTS,
    VOTE_BALLOTS_LAST_VOTE,
    Ballot,
    Decision,
    PositionSupport,
)


def verdict(debate: Debate) -> Verdict:
    """Return what an arena decided."""
    arena, names = debate.outcome.arena, names_of(debate)
    accepting = names.list_of(arena.consenting_agent_ids)
    return Verdict(
        answer=_find_position(arena.decision).position,
        decision=_describe_decision(debate, names),
        dissent=[*_list_objections(arena, names), *_list_other_stands(arena, names)],
        no_dissent=f"{accepting} can live with the answer." if accepting else NOT_ASKED,
        votes=_describe_votes(arena.decision),
    )


def _describe_votes(decision: Decision) -> str:
    """Return who voted for what stands, if the last vote decided."""
    core = decision.core_agent_id
    if decision.ballots != VOTE_BALLOTS_LAST_VOTE:
        return ""
    votes = count_votes_for(decision.count, core)
    return (
        f"{votes} and the judge"
        if not decision.judge_ballot.weight and decision.judge_ballot.choice_agent_id == core
        else votes
    )


def _find_position(decision: Decision) -> PositionSupport:
    """Return the position of the first drafts that stands; an empty one if they do not decide."""
    core = decision.core_agent_id
    return next(
        (
            each
            for each in decision.positions
            if core in (each.first_agent_ids if decision.core_is_first_draft else each.last_agent_ids)
        ),
        PositionSupport(),
    )


def _describe_decision(debate: Debate, names: Names) -> str:
    arena = debate.outcome.arena
    if not arena.HasField("decision"):
        return f"Written by {names.of_judge(arena.judge_agent_id)}; there was no vote."
    decision = arena.decision
    if decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS:
        return _describe_by_drafts(debate)
    core = decision.core_agent_id
    if decision.count.tied_agent_ids and decision.judge_ballot.choice_agent_id == core:
        tied = names.list_of(decision.count.tied_agent_ids)
        return f"The vote is tied ({strength_name(decision.count)}) between {tied}; the judge chose the proposal of {names.of(core)}."
    judge = " The judge's choice is one of the votes." if decision.judge_ballot.weight else ""
    return f"{describe_result(decision.count, names, core)}{judge}"


def _describe_by_drafts(debate: Debate) -> str:
    arena = debate.outcome.arena
    decision = arena.decision
    standing, strength = _find_position(decision), strength_name(decision.count)
    chosen = _describe_choosers(debate, standing)
    text = f"{chosen[:1].upper()}{chosen[1:]} chose it ({strength}{_describe_weight(decision, standing)})."
    if decision.count.winner_agent_id:
        return text
    if not decision.count.tied_agent_ids:
        return f"No position has enough votes. {text} It stands, since it has the most."
    why = describe_tie(decision, arena.votes[-1] if arena.votes else None, arena.ranking)
    return f"The positions are tied. {text} It stands, since {why}."


def _describe_choosers(debate: Debate, position: PositionSupport) -> str:
    """Return who chose a position, such as `two of three first drafts and the judge`."""
    decision = debate.outcome.arena.decision
    count, drafts = (
        len(position.first_agent_ids),
        sum(len(each.first_agent_ids) for each in decision.positions),
    )
    counted = count_of(count, drafts, "first draft")
    if drafts < sum(len(each.agent_ids) for each in debate.first_drafts.groups):
        counted += " that counts" if drafts == 1 else " that count"
    if not decision.HasField("judge_ballot"):
        return counted
    return f"{counted} and the judge" if _has_judge(decision, position) else f"{counted}, but not the judge,"


def _describe_weight(decision: Decision, position: PositionSupport) -> str:
    """Return the share of a position in what counts, if ballots do not all weigh the same."""
    weights = {round(each.weight, 2) for each in decision.count.ballots}
    return f"; {position.share:.0%} of the votes by what they weigh" if len(weights) > 1 else ""


def _has_judge(decision: Decision, position: PositionSupport) -> bool:
    return decision.judge_ballot.choice_agent_id in position.first_agent_ids


def _list_objections(arena: ArenaOutcome, names: Names) -> Iterator[str]:
    for each in arena.dissent:
        yield f"{names.of(each.agent_id)} cannot live with the answer: {names.put_in(each.text)}"


def _list_other_stands(arena: ArenaOutcome, names: Names) -> Iterator[str]:
    """Yield who holds another position in the end, and why, unless its objection says it."""
    decision, objecting = arena.decision, {each.agent_id for each in arena.dissent}
    if decision.ballots != VOTE_BALLOTS_FIRST_DRAFTS:
        yield from describe_minority(decision.count, names, decision.core_agent_id)
        return
    standing = _find_position(decision)
    moved = {agent for each in decision.positions for agent in each.last_agent_ids}
    for each in decision.positions:
        if each == standing:
            continue
        for agent in each.last_agent_ids:
            if agent not in objecting:
                yield from _describe_other_stand(arena, agent, each, standing, names)
        unknown = [agent for agent in each.first_agent_ids if agent not in moved and agent not in objecting]
        if unknown:
            drafts = "first draft" if len(unknown) == 1 else "first drafts"
            yield f"The {drafts} of {names.list_of(unknown)} took “{each.position.rstrip('.')}”; whether that still holds is not known."


def _describe_other_stand(
    arena: ArenaOutcome, agent: str, taken: PositionSupport, standing: PositionSupport, names: Names
) -> Iterator[str]:
    """Yield what an agent wants instead: the position that it voted for in the end, if that is known, or else its proposal's."""
    votes: Sequence[Ballot] = arena.votes[-1].ballots if arena.votes else ()
    ballot = next((each for each in votes if each.agent_id == agent), Ballot())
    chosen = next(
        (each for each in arena.decision.positions if ballot.choice_agent_id in each.last_agent_ids), None
    )
    if chosen == standing:
        return
    verb = "voted for" if chosen and chosen != taken else "still prefers"
    reason = f", because: {names.put_in(ballot.reason.rstrip('. '))}" if chosen and ballot.reason else ""
    accepts = " It can live with the answer." if agent in arena.consenting_agent_ids else ""
    yield f"{names.of(agent)} {verb} “{(chosen or taken).position.rstrip('.')}”{reason}.{accepts}"
