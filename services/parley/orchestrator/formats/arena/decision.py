"""What an arena decides, from which ballots, and whose text the answer is written around.

The first drafts are independent of each other, and the last ballots are not: agents that have read each other vote
alike. So by default the drafts decide. The judge's choice among their positions breaks ties, and is one more ballot if something
shows that it is right more often than not.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from parley.orchestrator.formats.arena.discussion import Discussion
from parley.orchestrator.formats.arena.judge import grouping_agent
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.deciding import positions_taken, sides, single_best, weigh_judge
from parley.orchestrator.model.model_families import shared_family
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.model.voting import Group, group_options
from parley.orchestrator.peers.services import truncate_text
from parley.orchestrator.phases.agreement import agent_positions, group_positions
from parley.orchestrator.phases.count_votes import (
    Electorate,
    VoteTerms,
    most_confident_choice,
    tied_option,
    vote_terms,
)
from parley.orchestrator.phases.judge_proposals import Judgement
from parley.orchestrator.phases.vote import fetch_records
from parley.runtime.contract_settings import with_defaults
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import DUTY_PROPOSER, DUTY_VOTER, RankedProposal
from parley.v1.convergence_pb2 import AgentPosition
from parley.v1.debate_pb2 import DraftGroup
from parley.v1.event_pb2 import StepFailed
from parley.v1.ratings_pb2 import WEIGHT_RULE_ACCURACY, AgentWeight
from parley.v1.voting_pb2 import (
    VOTE_BALLOTS_FIRST_DRAFTS,
    VOTE_BALLOTS_LAST_VOTE,
    VOTE_WEIGHTS_ACCURACY,
    VOTE_WEIGHTS_UNSPECIFIED,
    Ballot,
    Decision,
    PositionSupport,
    Vote,
    VoteBallots,
)

_POSITIONS: Final = Activity(
    "held-positions",
    "comparing the final proposals with the first drafts",
    title="comparison of final proposals and first drafts",
)
_KEY: Final = "decision"
_MAX_POSITIONS: Final = 32
"""Positions that convergence compares at a time; of proposals beyond them it is not known which position they take."""


class DecisionBasis(Struct, frozen=True):
    """What a debate is decided from.

    Attributes:
        ballots: Those that count.
        drafts: The groups of the first drafts, if these count.
        last_vote_reason: Why the last vote counts though the settings have the drafts count; empty: it does not.
    """

    ballots: VoteBallots.ValueType
    drafts: tuple[DraftGroup, ...] = ()
    last_vote_reason: str = ""


class JudgeResult(Struct, frozen=True):
    """What a judge said; `positions_to_choose`: the groups of drafts that it chose among, in the order in which it was shown them."""

    judge: Agent
    judgement: Judgement
    positions: Sequence[DraftGroup]


class MadeDecision(Struct, frozen=True):
    """A decision, and what agents weigh in it by the log-odds of being right; not those that weigh by something else."""

    decision: Decision
    odds: Mapping[str, float] = field(default_factory=dict)


async def determine_basis(arena: Discussion) -> DecisionBasis:
    """Return what the debate is decided from. It is known before the first vote, and holds to the end."""
    if with_defaults(arena.settings.voting).ballots == VOTE_BALLOTS_LAST_VOTE:
        return DecisionBasis(VOTE_BALLOTS_LAST_VOTE)
    proposers = {each.id for each in arena.agents(DUTY_PROPOSER)}
    others = sorted(each.id for each in arena.agents(DUTY_VOTER) if each.id not in proposers)
    if others:
        return DecisionBasis(
            VOTE_BALLOTS_LAST_VOTE, last_vote_reason=f"no duty to propose, but to vote: {', '.join(others)}"
        )
    drafts = await arena.get_draft_groups()
    if drafts is None or not drafts.certain:
        return DecisionBasis(
            VOTE_BALLOTS_LAST_VOTE,
            last_vote_reason="which first drafts take the same position cannot be told",
        )
    return DecisionBasis(VOTE_BALLOTS_FIRST_DRAFTS, tuple(drafts.groups))


def decides_without_vote(arena: Discussion, basis: DecisionBasis) -> bool:
    """Return whether the first drafts decide, whatever becomes of the last vote."""
    voters = [each.id for each in arena.agents(DUTY_VOTER)]
    return bool(sides([each.agent_ids for each in basis.drafts], voters))


def positions_to_choose(
    arena: Discussion, basis: DecisionBasis, judge: Agent, number: int
) -> Sequence[DraftGroup]:
    """Return the groups of drafts that the judge chooses among in a round, in an order of that round's own.

    There is nothing to choose if there is one position, or one that no line states; nor does who votes choose again.
    """
    voters = {each.id for each in arena.agents(DUTY_VOTER)}
    found = [each for each in basis.drafts if voters.intersection(each.agent_ids)]
    is_choice = len(found) > 1 and all(each.position for each in found)
    if not (is_choice and with_defaults(arena.settings.voting).judge_ballot) or judge.id in voters:
        return ()
    arena.debate.random(f"round/{number}/judge/positions").shuffle(found)
    return found


async def make_decision(
    arena: Discussion,
    basis: DecisionBasis,
    vote: Vote,
    judged: JudgeResult,
    ranking: Sequence[RankedProposal],
    last: Sequence[Sequence[str]],
) -> MadeDecision:
    """Return what is decided; `vote`: the last one; `last`: whose proposals take each position of the first drafts now."""
    voters = arena.agents(DUTY_VOTER)
    groups = sides([each.agent_ids for each in basis.drafts], [each.id for each in voters])
    if groups:
        heard = {each.agent for each in arena.works()}
        last = [[agent for agent in each if agent in heard] for each in last]
        return await _decide_by_drafts(arena, basis, voters, groups, vote, judged, ranking, last)
    if basis.drafts:
        # The vote was on other terms, and may have ended before the judge's ballot could count.
        decision = Decision(
            ballots=VOTE_BALLOTS_LAST_VOTE,
            count=vote,
            last_vote_reason="nobody who may vote has a first draft",
        )
    else:
        decision = await _decide_by_last_vote(arena, _terms(arena, basis), vote, judged, ranking)
        decision.last_vote_reason = basis.last_vote_reason
    chosen = decision.judge_ballot.choice_agent_id
    decision.core_agent_id = tied_option(decision.count, chosen) or most_confident_choice(decision.count)
    is_by_odds = vote.weighted_by == VOTE_WEIGHTS_ACCURACY
    return MadeDecision(decision, {each.agent_id: each.weight for each in vote.ballots} if is_by_odds else {})


def _terms(arena: Discussion, basis: DecisionBasis) -> VoteTerms:
    return vote_terms(
        arena.settings.voting,
        ballots=basis.ballots,
        has_open_critiques=arena.transcript.has_serious_open_issue([each.agent for each in arena.works()]),
        one_voice=shared_family(arena.agents(DUTY_VOTER)),
        key=_KEY,
    )


async def _decide_by_last_vote(
    arena: Discussion, terms: VoteTerms, vote: Vote, judged: JudgeResult, ranking: Sequence[RankedProposal]
) -> Decision:
    options = [each.agent_id for each in vote.options]
    groups = group_options(options, [each.agent_ids for each in vote.groups], ())
    scores = {
        each.agent_id: each.score for each in ranking if each.HasField("score") and each.agent_id in options
    }
    best = single_best(scores, groups)
    voters = [*(each.agent_id for each in vote.ballots), *vote.abstained_agent_ids]
    judge = judged.judge
    if best is None or judge.id in voters or not with_defaults(arena.settings.voting).judge_ballot:
        return Decision(ballots=VOTE_BALLOTS_LAST_VOTE, count=vote)
    records = await fetch_records(arena.debate, [judge], terms)
    reason = next(each.reason for each in ranking if each.agent_id == best)
    decision = Decision(ballots=VOTE_BALLOTS_LAST_VOTE, count=vote)
    own = Ballot(agent_id=judge.id, choice_agent_id=best, reason=reason)
    _set_judge_ballot(decision, own, judge, records[judge.id], terms)
    if decision.judge_ballot.weight:
        ballots = sorted([*vote.ballots, decision.judge_ballot], key=lambda each: each.agent_id)
        electorate = Electorate([*voters, judge.id], options, terms)
        decision.count.CopyFrom(electorate.create_result(ballots, groups))
    return decision


def _set_judge_ballot(
    decision: Decision, ballot: Ballot, judge: Agent, record: AgentWeight, terms: VoteTerms
) -> None:
    """Set in a decision what the judge chose, with what that weighs by its record."""
    right, answers = record.rating.right_answers, record.rating.judged_answers
    weighted = terms.weighted_by != VOTE_WEIGHTS_UNSPECIFIED
    found = weigh_judge(right, answers - right, stronger=judge.stronger, weighted=weighted)
    decision.judge_ballot.CopyFrom(ballot)
    decision.judge_ballot.weight, decision.judge_standing = found.weight, found.standing


async def _decide_by_drafts(
    arena: Discussion,
    basis: DecisionBasis,
    voters: Sequence[Agent],
    groups: Sequence[Group],
    vote: Vote,
    judged: JudgeResult,
    ranking: Sequence[RankedProposal],
    last: Sequence[Sequence[str]],
) -> MadeDecision:
    judge = judged.judge
    # A judge that was muted when it chose, and is heard again, has the ballot of its own draft.
    choice = () if judge.id in {each.id for each in voters} else _choice_of_judge(judged, groups)
    # A draft is its author's own choice, and drafts are counted apart in any case.
    terms = replace(_terms(arena, basis), self_votes=True, group_choices=True)
    records = await fetch_records(arena.debate, [*voters, judge] if choice else voters, terms)
    options = [each for group in groups for each in group]
    ballots = [Ballot(agent_id=each, choice_agent_id=each, weight=records[each].weight) for each in options]
    decision = Decision(ballots=VOTE_BALLOTS_FIRST_DRAFTS)
    if choice:
        chosen = min(choice, key=lambda each: (-records[each].weight, each))
        _set_judge_ballot(decision, _ballot_of_judge(judged, chosen), judge, records[judge.id], terms)
    asked = [*voters, judge] if decision.judge_ballot.weight else voters
    ballots += [decision.judge_ballot] if decision.judge_ballot.weight else []
    ballots.sort(key=lambda each: each.agent_id)
    electorate = Electorate(
        [each.id for each in asked], options, replace(terms, shared_family=shared_family(asked))
    )
    decision.count.CopyFrom(electorate.create_result(ballots, group_options(options, groups, ())))
    positions = _positions_to_proto(basis.drafts, last, decision.count, [each.id for each in voters])
    decision.positions.extend(positions)
    standing = _find_leading_draft(decision, vote, ranking)
    holders = next(each.last_agent_ids for each in positions if standing in each.first_agent_ids)
    decision.core_agent_id = _best_agent(holders, vote, ranking) if holders else standing
    decision.core_is_first_draft = not holders
    odds = {agent: each.weight for agent, each in records.items() if each.rule == WEIGHT_RULE_ACCURACY}
    return MadeDecision(decision, odds)


def rank_tied(
    decision: Decision, last: Vote | None, ranking: Sequence[RankedProposal]
) -> list[tuple[float, float, str]]:
    """Return the positions of first drafts that are tied, by what decides between them where the judge chose none: the first stands.

    Of each: the share of the last vote and then the judge's best score that its final proposals have, both negative, and the first
    agent by name whose draft takes it. `last`: the last vote; None: too few have voted.
    """
    shares = {each.agent_id: each.share for each in last.options} if last is not None else {}
    scores = {each.agent_id: each.score for each in ranking}
    ranks = []
    for each in decision.positions:
        if tied := set(decision.count.tied_agent_ids).intersection(each.first_agent_ids):
            voted = sum(shares.get(agent, 0.0) for agent in each.last_agent_ids)
            score = max((scores.get(agent, 0.0) for agent in each.last_agent_ids), default=0.0)
            ranks.append((-voted, -score, min(tied)))
    return sorted(ranks)


def _find_leading_draft(decision: Decision, vote: Vote, ranking: Sequence[RankedProposal]) -> str:
    """Return whose first draft stands: of several that are first the judge's choice, without one the first as they are ranked."""
    count = decision.count
    if chosen := tied_option(count, decision.judge_ballot.choice_agent_id):
        return chosen
    ranks = rank_tied(decision, vote, ranking)
    return ranks[0][2] if ranks else most_confident_choice(count)


def _ballot_of_judge(judged: JudgeResult, chosen: str) -> Ballot:
    said = judged.judgement
    return Ballot(
        agent_id=judged.judge.id,
        choice_agent_id=chosen,
        confidence=said.position_confidence,
        reason=said.position_reason,
    )


def _choice_of_judge(judged: JudgeResult, groups: Sequence[Group]) -> Group:
    """Return the side that the judge has chosen; empty for none, or one that no agent counts for any more."""
    place = judged.judgement.position
    if not place or place > len(judged.positions):
        return ()
    chosen = judged.positions[place - 1].agent_ids
    return next((group for group in groups if set(group) <= set(chosen)), ())


async def compare_last_positions(arena: Discussion, basis: DecisionBasis, number: int) -> list[list[str]]:
    """Return which proposals of a round take each position of the first drafts, as far as it is known."""
    drafts, works = basis.drafts, arena.works()
    kept = {each.agent for each in works if each is arena.transcript.draft(each.agent)}
    known = [sorted(kept.intersection(each.agent_ids)) for each in drafts]
    changed = [each for each in works if each.agent not in kept]
    if not drafts or not changed or len(works) < 2:
        return known
    names = [f"first/{place}" for place, _ in enumerate(drafts, start=1)]
    stands = [_draft_position(arena, name, each) for name, each in zip(names, drafts, strict=True)]
    stands = [*stands, *agent_positions(changed)][:_MAX_POSITIONS]
    key = f"round/{number}/{_POSITIONS.name}"
    found = await group_positions(
        arena.debate, key, _POSITIONS.create_work(round_number=number), stands, partial(grouping_agent, arena)
    )
    if isinstance(found, StepFailed):
        message = f"which final proposals take which first position could not be told: {found.message}"
        arena.debate.warn(key, message)
        return known
    unlike = [(each.agent_id, each.other_agent_id) for each in found.contradictions]
    unlike += [(each.agent_id, each.other_agent_id) for each in found.unsure]
    taken = positions_taken(unlike, names, {each.agent_id for each in stands} - set(names))
    return [sorted([*one, *other]) for one, other in zip(known, taken, strict=True)]


def _draft_position(arena: Discussion, name: str, group: DraftGroup) -> AgentPosition:
    if group.position:
        return AgentPosition(agent_id=name, position=group.position)
    return AgentPosition(agent_id=name, text=truncate_text(arena.transcript.draft(group.agent_ids[0]).text))


def _positions_to_proto(
    drafts: Sequence[DraftGroup], last: Sequence[Sequence[str]], count: Vote, voters: Sequence[str]
) -> list[PositionSupport]:
    shares = {each.agent_id: each.share for each in count.options}
    positions = [
        PositionSupport(
            position=each.position,
            first_agent_ids=sorted(set(each.agent_ids).intersection(voters)),
            last_agent_ids=agents,
            share=sum(shares.get(agent, 0.0) for agent in each.agent_ids),
        )
        for each, agents in zip(drafts, last, strict=True)
    ]
    return sorted(positions, key=lambda each: (-each.share, *each.first_agent_ids[:1]))


def _best_agent(agents: Sequence[str], vote: Vote, ranking: Sequence[RankedProposal]) -> str:
    """Return whose final proposal is best, as the judge scored them, and of equals as the last vote went."""
    scores = {each.agent_id: each.score for each in ranking}
    shares = {each.agent_id: each.share for each in vote.options}
    return min(agents, key=lambda each: (-scores.get(each, 0.0), -shares.get(each, 0.0), each))


def core_text(arena: Discussion, decision: Decision) -> Contribution:
    """Return the text that the answer is written around."""
    agent = decision.core_agent_id
    return arena.transcript.draft(agent) if decision.core_is_first_draft else arena.transcript.work(agent)
