"""From the vote to the answer: vote, judge, rounds that the judge adds, and what the participants say of the answer."""

from collections.abc import Sequence

from parley.orchestrator.formats.arena.discussion import Discussion
from parley.orchestrator.formats.arena.judge import judge_of
from parley.orchestrator.formats.arena.outcome import outcome_of
from parley.orchestrator.formats.arena.rounds import hold_revision
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.model_families import one_voice
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.phases import synthesize
from parley.orchestrator.phases.judge_proposals import Judgement, judge_proposals, ranked
from parley.orchestrator.phases.verify import Verified, verify
from parley.orchestrator.phases.vote import hold_vote, surest
from parley.orchestrator.phases.vote_terms import vote_terms
from parley.orchestrator.phases.write_from_vote import vote_account, write_from_vote
from parley.v1.arena_pb2 import (
    DUTY_VOTER,
    RankedProposal,
)
from parley.v1.debate_pb2 import (
    Outcome,
)
from parley.v1.voting_pb2 import Vote

__all__ = ["decide"]


async def decide(arena: Discussion) -> Outcome:
    """Vote, let the judge judge, add rounds where it finds the discussion insufficient, and write the answer."""
    votes: list[Vote] = []
    async with arena.round(arena.judge_round - 1):
        await _vote(arena, arena.judge_round - 1, votes)
    extended = 0
    judge = judge_of(arena)
    async with arena.round(arena.judge_round):
        judgement = await _judged(arena, judge, arena.judge_round)
    while judgement.sufficient is False and extended < arena.settings.max_extended_rounds:
        number = arena.total + 1
        await arena.steer(number)
        if arena.steering.end:
            break
        extended, arena.total = extended + 1, number
        async with arena.round(number):
            await hold_revision(arena, number, judgement.missing or "What is still open between the agents.")
            await _vote(arena, number, votes)
            judgement = await _judged(arena, judge, number)
    return await _write(arena, judge, votes, judgement, extended)


async def _vote(arena: Discussion, number: int, votes: list[Vote]) -> None:
    """Vote on the present texts; where there is only one, or nobody who votes, there is no vote."""
    arena.enter_again("VOTING", number)
    work, voters = arena.works(), arena.agents(DUTY_VOTER)
    if len(work) > 1 and voters:
        terms = vote_terms(
            arena.settings.voting,
            has_open_critiques=arena.record.has_serious_open_issue([each.agent for each in work]),
            one_voice=one_voice(voters),
            key=f"round/{number}/vote",
            round_number=number,
        )
        votes.append(await hold_vote(arena.debate, voters, work, arena.requirements.told(), terms))
    arena.enter_again("VOTE_AGGREGATION", number)
    is_consensus = bool(votes and votes[-1].winner_agent_id)
    arena.enter_again("CONSENSUS_REACHED" if is_consensus else "NO_CONSENSUS", number)


async def _judged(arena: Discussion, judge: AgentSpec, number: int) -> Judgement:
    return await judge_proposals(
        arena.debate, judge, number, arena.works(), arena.issues(), arena.requirements.told()
    )


def _ranking(arena: Discussion, judgement: Judgement) -> list[RankedProposal]:
    return ranked(judgement, {arena.debate.letter(each.agent): each.agent for each in arena.works()})


async def _write(
    arena: Discussion, judge: AgentSpec, votes: Sequence[Vote], judgement: Judgement, extended: int
) -> Outcome:
    """Write the answer from the vote, and have the participants say whether they can live with it."""
    arena.steering = await arena.debate.control("synthesis/control")
    work, ranking = arena.works(), _ranking(arena, judgement)
    if not work:
        raise DebateFailedError(
            "QUORUM_LOST", "every agent with a proposal is muted", phase=synthesize.SYNTHESIS.name
        )
    first = _first(work, votes, ranking)
    accounts = (
        ("How the vote went", vote_account(arena.debate, votes[-1]) if votes else ""),
        ("Your judgement of the proposals", _told_ranking(arena, ranking)),
        ("What was criticized, and what became of it", arena.issues()),
    )
    required = arena.requirements.told()
    answer = await write_from_vote(
        arena.debate, judge, work, first, accounts, arena.steering.guidance, required
    )
    verified = Verified((), ())
    if arena.settings.verification:
        verified = await verify(arena.debate, arena.heard, work, answer, required)
    return outcome_of(answer, judge.id, votes, ranking, judgement, verified, extended, arena.not_asked)


def _told_ranking(arena: Discussion, ranking: Sequence[RankedProposal]) -> str:
    return "\n".join(
        f"{place}. agent {arena.debate.letter(each.agent_id)}"
        f"{f', {each.score:g} of 10' if each.HasField('score') else ''}{': ' if each.reason else ''}{each.reason}"
        for place, each in enumerate(ranking, start=1)
    )


def _first(work: Sequence[Contribution], votes: Sequence[Vote], ranking: Sequence[RankedProposal]) -> str:
    """Return whose proposal is the answer's core: that of the vote, else of the judge, else of the first agent."""
    if votes:
        return surest(votes[-1])
    return ranking[0].agent_id if ranking else work[0].agent
