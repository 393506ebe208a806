"""What an arena comes to, and how it is shown."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from parley.orchestrator.engine.format import AnswerPart
from parley.orchestrator.formats.arena.deciding import Judged
from parley.orchestrator.formats.arena.decision_words import decision_lines
from parley.orchestrator.phases.answer_from_vote import Verified
from parley.orchestrator.phases.count_votes import vote_lines
from parley.v1.arena_pb2 import ArenaOutcome, RankedProposal
from parley.v1.debate_pb2 import AgentScore, Outcome
from parley.v1.voting_pb2 import VOTE_BALLOTS_FIRST_DRAFTS, Decision, Vote, VoteStrength

__all__ = ["answer_parts", "outcome_of"]

_WITHOUT_WINNER: Final = "no proposal has enough votes"


def outcome_of(
    answer: str,
    judged: Judged,
    votes: Sequence[Vote],
    decision: Decision | None,
    ranking: Sequence[RankedProposal],
    verified: Verified,
    *,
    extended_rounds: int,
    not_asked: Collection[str] = (),
) -> Outcome:
    """Return the outcome; ratings count the scores that the judge gave."""
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
    return Outcome(description=answer, scores=scores, arena=arena)


def answer_parts(outcome: Outcome) -> Iterator[AnswerPart]:
    """Yield the parts of the answer in the order in which they are read."""
    arena = outcome.arena
    yield AnswerPart("", outcome.description)
    if arena.HasField("decision"):
        lines = list(decision_lines(arena.decision, arena.votes[-1] if arena.votes else None))
        yield AnswerPart("Decision", items=lines, quoted=False)
    for number, vote in enumerate(arena.votes, start=1):
        title = "Vote" if len(arena.votes) == 1 else f"Vote {number} of {len(arena.votes)}"
        if arena.decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS:
            title = f"{title}, which did not decide"
        yield AnswerPart(
            title,
            items=list(vote_lines(vote, without_winner=_WITHOUT_WINNER, with_shares=True)),
            quoted=False,
        )
    yield AnswerPart(
        f"Ranking by {arena.judge_agent_id}", items=[_ranked_line(each) for each in arena.ranking]
    )
    yield AnswerPart("Still to be settled", arena.missing)
    yield AnswerPart("Dissent", items=[f"{each.agent_id}: {each.text}" for each in arena.dissent])
    if arena.consenting_agent_ids:
        names = ", ".join(arena.consenting_agent_ids)
        yield AnswerPart("Verification", f"{names} can live with the answer.", quoted=False)
    if arena.not_asked_agent_ids:
        names = ", ".join(arena.not_asked_agent_ids)
        yield AnswerPart("Not asked", f"{names}: what the others proposed was probable enough.", quoted=False)


def _ranked_line(each: RankedProposal) -> str:
    score = f"{each.score:g} of 10" if each.HasField("score") else "no score"
    return f"{each.agent_id}, {score}{': ' if each.reason else ''}{each.reason}"
