"""What an arena comes to: its outcome, and the parts of the answer as people read them."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from parley.orchestrator.engine.format import AnswerPart
from parley.orchestrator.formats.arena.decision import JudgeResult, rank_tied
from parley.orchestrator.model.names import names_of
from parley.orchestrator.phases.answer_details import detail_parts
from parley.orchestrator.phases.answer_from_vote import VerificationResult
from parley.orchestrator.phases.count_votes import (
    describe_tie_break,
    most_confident_choice,
    result_lines,
    strength_name,
    tied_option,
    vote_lines,
)
from parley.runtime.agent_names import Names
from parley.v1.arena_pb2 import ArenaOutcome, RankedProposal
from parley.v1.debate_pb2 import AgentScore, Debate, Outcome
from parley.v1.voting_pb2 import (
    JUDGE_STANDING_RECORD,
    JUDGE_STANDING_STRONGER,
    JUDGE_STANDING_TIES_ONLY,
    VOTE_BALLOTS_FIRST_DRAFTS,
    VOTE_BALLOTS_LAST_VOTE,
    Decision,
    Vote,
    VoteStrength,
)

_STANDINGS: Final = {
    JUDGE_STANDING_TIES_ONLY: "it breaks ties and overrules nobody, as nothing shows that it is right more often than not",
    JUDGE_STANDING_RECORD: "by how often it was right",
    JUDGE_STANDING_STRONGER: "the configuration calls it stronger",
}


def decision_lines(
    decision: Decision, last: Vote | None, names: Names, ranking: Sequence[RankedProposal] = ()
) -> Iterator[str]:
    """Yield what was decided, line by line, by the names of agents. `last`: the last vote; None: too few have voted."""
    count, by_drafts = decision.count, decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS
    drafts = "the first drafts, written before anyone had read another's"
    ballot = decision.judge_ballot
    judge = f", and the choice of {names.of_judge(ballot.agent_id)}" if ballot.weight else ""
    yield f"counted: {drafts if by_drafts else 'the ballots of the last vote'}{judge}"
    if decision.last_vote_reason:
        yield f"the first drafts were not counted: {decision.last_vote_reason}"
    yield _describe_winner(decision, last, names, ranking)
    if count.shared_family:
        yield f"all voters share one model family ({count.shared_family}): they are one voice"
    for each in decision.positions:
        first = names.list_of(each.first_agent_ids) or "no agent that votes"
        share = f"{each.share:.0%} of what counts"
        last_holders = _list_names(each.last_agent_ids, names)
        yield f"“{each.position.rstrip('.')}”: at first {first}; in the end {last_holders}; {share}"
    yield from _describe_ballots(decision, names)
    if by_drafts and last is not None:
        yield _describe_change(decision, most_confident_choice(last))
    core = names.of(decision.core_agent_id)
    if decision.core_is_first_draft:
        yield f"no final proposal is known to take that position: the answer is written around the first draft of {core}"
    else:
        yield f"the answer is written around the proposal of {core}"


def _describe_winner(
    decision: Decision, last: Vote | None, names: Names, ranking: Sequence[RankedProposal]
) -> str:
    count, strength = decision.count, strength_name(decision.count)
    what = "the first draft" if decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS else "the proposal"
    if count.winner_agent_id:
        return f"{what} of {names.of(count.winner_agent_id)} has won ({strength})"
    if not count.tied_agent_ids:
        return f"nothing has won ({strength}); the one with the largest share stands"
    tied, why = names.list_of(count.tied_agent_ids), describe_tie(decision, last, ranking)
    return f"nothing has won ({strength}): {tied} are tied; one of them stands, since {why}"


def describe_tie(decision: Decision, last: Vote | None, ranking: Sequence[RankedProposal]) -> str:
    """Return why the one of several that are tied stands. No agent was asked how sure of its first draft it is."""
    count = decision.count
    if tied_option(count, decision.judge_ballot.choice_agent_id):
        return "the judge chose it"
    if decision.ballots != VOTE_BALLOTS_FIRST_DRAFTS:
        return describe_tie_break(count)
    first, *others = rank_tied(decision, last, ranking)
    if all(first[0] < each[0] for each in others):
        return "most votes in the end went to it"
    return (
        "the judge scored it best"
        if all(first[:2] < each[:2] for each in others)
        else "it comes first by name"
    )


def _describe_ballots(decision: Decision, names: Names) -> Iterator[str]:
    """Yield the judge's choice, and what first drafts weigh; the ballots of a vote are shown with it."""
    own = decision.judge_ballot
    for ballot in decision.count.ballots:
        is_draft = decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS and ballot.agent_id != own.agent_id
        if is_draft and ballot.weight != 1:
            yield f"the draft of {names.of(ballot.agent_id)} weighs {ballot.weight:.2f}"
    if decision.HasField("judge_ballot"):
        weight = f"weight {own.weight:.2f}, " if own.weight else ""
        chosen = _describe_choice(decision, names.of(own.choice_agent_id))
        reason = f": {names.put_in(own.reason)}" if own.reason else ""
        yield f"the judge chose {chosen} ({weight}{_STANDINGS[decision.judge_standing]}){reason}"


def _describe_choice(decision: Decision, agent: str) -> str:
    by_drafts = decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS
    return f"the position of the first draft of {agent}" if by_drafts else f"the proposal of {agent}"


def _describe_change(decision: Decision, voted: str) -> str:
    """Return what the debate has changed: whether the last vote would have decided otherwise."""
    core = decision.core_agent_id
    place = next((each for each in decision.positions if voted in each.last_agent_ids), None)
    if place is None:
        return "it is not known whether the last vote would have decided otherwise: it is not known which of these positions the proposal that led it takes"
    if core in (place.first_agent_ids if decision.core_is_first_draft else place.last_agent_ids):
        return "the last vote would have decided the same"
    return f"the last vote would have decided otherwise: {place.position}"


def _list_names(agents: Sequence[str], names: Names) -> str:
    return names.list_of(agents) or "no agent"


def outcome_of(
    answer: Outcome,
    judged: JudgeResult,
    votes: Sequence[Vote],
    decision: Decision | None,
    ranking: Sequence[RankedProposal],
    verified: VerificationResult,
    *,
    extended_rounds: int,
    not_asked: Collection[str] = (),
) -> Outcome:
    """Return the outcome; ratings count the scores that the judge gave. `answer` has the answer and its details."""
    scores = [
        AgentScore(agent_id=each.agent_id, score=each.score)
        for each in sorted(ranking, key=lambda each: each.agent_id)
        if each.HasField("score")
    ]
    arena = ArenaOutcome(
        winner_agent_id=decision.count.winner_agent_id if decision else "",
        strength=decision.count.strength if decision else VoteStrength.VOTE_STRENGTH_UNSPECIFIED,
        votes=votes,
        ranking=ranking,
        judge_agent_id=judged.judge.id,
        extended_rounds=extended_rounds,
        sufficient=judged.judgement.sufficient,
        missing=judged.judgement.missing,
        dissent=verified.dissent,
        consenting_agent_ids=verified.consenting,
        not_asked_agent_ids=sorted(not_asked),
        decision=decision,
    )
    outcome = Outcome(scores=scores, arena=arena)
    outcome.MergeFrom(answer)
    return outcome


def answer_parts(debate: Debate) -> Iterator[AnswerPart]:
    """Yield the parts of the answer of a debate in the order in which they are read."""
    arena, names = debate.outcome.arena, names_of(debate)
    yield AnswerPart("", debate.outcome.description)
    yield from detail_parts(debate.outcome.details, debate.requirements)
    if arena.HasField("decision"):
        last = arena.votes[-1] if arena.votes else None
        lines = list(decision_lines(arena.decision, last, names, arena.ranking))
        yield AnswerPart("How it was decided", items=lines, quoted=False, is_process=True)
    for number, vote in enumerate(arena.votes, start=1):
        title = "Vote" if len(arena.votes) == 1 else f"Vote {number} of {len(arena.votes)}"
        decided = number == len(arena.votes) and arena.decision.ballots == VOTE_BALLOTS_LAST_VOTE
        if not decided:
            title = f"{title}, which did not decide"
        lines = [] if decided else list(result_lines(vote, names))
        lines += vote_lines(vote, names, with_shares=True)
        yield AnswerPart(title, items=lines, quoted=False, is_process=True)
    ranking = [_ranking_line(each, names) for each in arena.ranking]
    yield AnswerPart(f"Ranking by {names.of_judge(arena.judge_agent_id)}", items=ranking, is_process=True)
    yield AnswerPart("Still to be settled", arena.missing)
    objections = [f"{names.of(each.agent_id)}: {names.put_in(each.text)}" for each in arena.dissent]
    yield AnswerPart("Dissent", items=objections, is_dissent=True)
    if arena.consenting_agent_ids:
        consenting = names.list_of(arena.consenting_agent_ids)
        yield AnswerPart(
            "Verification", f"{consenting} can live with the answer.", quoted=False, is_process=True
        )
    if arena.not_asked_agent_ids:
        agents = names.list_of(arena.not_asked_agent_ids)
        yield AnswerPart(
            "Not asked",
            f"{agents}: what the others proposed was probable enough.",
            quoted=False,
            is_process=True,
        )


def _ranking_line(each: RankedProposal, names: Names) -> str:
    score = f"{each.score:g} of 10" if each.HasField("score") else "no score"
    return f"{names.of(each.agent_id)}, {score}{': ' if each.reason else ''}{names.put_in(each.reason)}"
