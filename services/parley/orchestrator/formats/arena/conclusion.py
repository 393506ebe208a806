"""From the vote to the answer: vote, judge, rounds that the judge adds, and what the participants say of the answer."""

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import chain

from parley.orchestrator.formats.arena.decision import (
    DecisionBasis,
    JudgeResult,
    compare_last_positions,
    core_text,
    decides_without_vote,
    determine_basis,
    make_decision,
    positions_to_choose,
)
from parley.orchestrator.formats.arena.discussion import Discussion
from parley.orchestrator.formats.arena.effect import describe_effect_of_decision
from parley.orchestrator.formats.arena.judge import grouping_agent, judge_of
from parley.orchestrator.formats.arena.outcome import outcome_of
from parley.orchestrator.formats.arena.rounds import run_revision
from parley.orchestrator.model.best_work import BestWork, choose_best_work
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.model_families import shared_family
from parley.orchestrator.model.stands import list_stands
from parley.orchestrator.phases import synthesize
from parley.orchestrator.phases.answer_details import create_details
from parley.orchestrator.phases.answer_from_vote import (
    Core,
    VerificationResult,
    describe_decision,
    describe_vote,
    verify,
    write_from_vote,
)
from parley.orchestrator.phases.answer_questions import AnswerQuestions
from parley.orchestrator.phases.count_votes import vote_terms
from parley.orchestrator.phases.effect import AnswerPositions, ask_positions, name_positions
from parley.orchestrator.phases.judge_proposals import judge_proposals, rank_proposals
from parley.orchestrator.phases.past import PastQuestion
from parley.orchestrator.phases.stand_in import create_stand_in
from parley.orchestrator.phases.vote import run_vote
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import (
    DUTY_VOTER,
    RankedProposal,
)
from parley.v1.debate_pb2 import (
    Outcome,
)
from parley.v1.voting_pb2 import VOTE_BALLOTS_LAST_VOTE, Decision, Vote


async def conclude(arena: Discussion) -> Outcome:
    """Vote, let the judge judge, add rounds if it finds the discussion insufficient, decide, and write the answer."""
    votes: list[Vote] = []
    basis = await determine_basis(arena)
    extended = 0
    comparing = _start_comparing(arena, basis, arena.judge_round - 1)
    async with arena.run_round(arena.judge_round - 1):
        await _run_vote(arena, basis, arena.judge_round - 1, votes)
    arena.debate.expect_answer_calls(1)
    judge = judge_of(arena)
    async with arena.run_round(arena.judge_round):
        judged = await _judge(arena, basis, judge, arena.judge_round)
    while judged.judgement.sufficient is False and extended < arena.settings.max_extended_rounds:
        number = arena.total_rounds + 1
        await arena.update_steering(number)
        if arena.steering.end:
            break
        extended, arena.total_rounds = extended + 1, number
        arena.expect_vote()
        missing = judged.judgement.missing or "What is still open between the agents."
        async with arena.run_round(number):
            await run_revision(arena, number, missing)
            comparing = _start_comparing(arena, basis, number)
            await _run_vote(arena, basis, number, votes)
            arena.debate.expect_answer_calls(1)
            judged = await _judge(arena, basis, judge, number)
    return await _write_answer(arena, basis, judged, votes, await comparing, extended)


def _start_comparing(arena: Discussion, basis: DecisionBasis, number: int) -> asyncio.Task[list[list[str]]]:
    """Begin to compare the present texts with the first drafts, which the vote and the judge do not wait for."""
    return arena.tasks.create_task(compare_last_positions(arena, basis, number))


async def _run_vote(arena: Discussion, basis: DecisionBasis, number: int, votes: list[Vote]) -> None:
    """Vote on the present texts; if there is only one, or no agent that votes, there is no vote.

    A vote in which too few have voted has no options; if it was to decide, there is none.
    """
    arena.enter_repeated_state("VOTING", number)
    work, voters = arena.works(), arena.agents(DUTY_VOTER)
    if len(work) > 1 and voters:
        terms = vote_terms(
            arena.settings.voting,
            ballots=basis.ballots,
            has_open_critiques=arena.transcript.has_serious_open_issue([each.agent for each in work]),
            one_voice=shared_family(voters),
            key=f"round/{number}/vote",
            round_number=number,
        )
        required = arena.requirements.to_prompt_text()
        asked = partial(grouping_agent, arena) if basis.ballots == VOTE_BALLOTS_LAST_VOTE else None
        try:
            votes.append(await run_vote(arena.debate, voters, work, required, terms, asked))
        except DebateFailedError as lost:
            if lost.steps_to_wait_for:
                raise
            if decides_without_vote(arena, basis):
                instead = "the first drafts decide without them"
                votes.append(Vote())
            else:
                instead = "the answer is written without them"
            arena.debate.warn(terms.key, f"too few votes came in, and {instead}: {lost}")
    arena.enter_repeated_state("VOTE_AGGREGATION", number)
    is_consensus = bool(votes and votes[-1].winner_agent_id)
    arena.enter_repeated_state("CONSENSUS_REACHED" if is_consensus else "NO_CONSENSUS", number)


async def _judge(arena: Discussion, basis: DecisionBasis, judge: Agent, number: int) -> JudgeResult:
    work, positions = arena.works(), positions_to_choose(arena, basis, judge, number)
    judgement = await judge_proposals(
        arena.debate,
        judge,
        number,
        work,
        await arena.collect_issues(),
        arena.requirements.to_prompt_text(),
        [each.position for each in positions],
    )
    return JudgeResult(judge, judgement, positions)


def _vote_title(decision: Decision | None) -> str:
    decided = decision is None or decision.ballots == VOTE_BALLOTS_LAST_VOTE
    return "How the vote went" if decided else "How the last vote went, which did not decide"


async def _write_answer(
    arena: Discussion,
    basis: DecisionBasis,
    judged: JudgeResult,
    votes: Sequence[Vote],
    last: Sequence[Sequence[str]],
    extended: int,
) -> Outcome:
    """Decide, write the answer, and have the participants say whether they can live with it."""
    debate = arena.debate
    arena.steering = await debate.read_steering("synthesis/control")
    work = arena.works() or arena.transcript.works(arena.order)  # muted or not, it is all that there is
    ranking = rank_proposals(judged.judgement, {debate.letter(each.agent): each.agent for each in work})
    made = await make_decision(arena, basis, votes[-1], judged, ranking, last) if votes else None
    decision = made.decision if made else None
    with_options = [each for each in votes if each.options]
    accounts = await _list_accounts(arena, decision, with_options, ranking)
    core = _find_core(arena, decision, ranking, work)
    is_first = decision is not None and decision.core_is_first_draft
    stands = list_stands(arena.transcript.contributions)
    asked = AnswerQuestions(ask_positions(debate, stands), PastQuestion(arena.past))
    outcome = Outcome()
    text, said = await _fill_in_answer(
        outcome, arena, judged.judge, work, core, accounts, asked, is_first=is_first
    )
    verified = VerificationResult((), ())
    if arena.settings.verification:
        required = arena.requirements.to_prompt_text()
        verified = await verify(debate, arena.active_agents, work, text, required)
    named = name_positions(stands, await arena.get_draft_groups(), asked.positions, said)
    effect = describe_effect_of_decision(
        arena, judged.judge, stands, named, outcome.details, made, with_options
    )
    outcome.effect.CopyFrom(effect)
    return outcome_of(
        outcome,
        judged,
        with_options,
        decision,
        ranking,
        verified,
        extended_rounds=extended,
        not_asked=arena.skipped_agents,
    )


async def _list_accounts(
    arena: Discussion, decision: Decision | None, votes: Sequence[Vote], ranking: Sequence[RankedProposal]
) -> Sequence[tuple[str, str]]:
    """Return what the judge is told of the way to the answer, with a title each; the last of the `votes` counts."""
    return (
        ("How it was decided", describe_decision(arena.debate, decision) if decision else ""),
        (_vote_title(decision), describe_vote(arena.debate, votes[-1]) if votes else ""),
        ("Your judgement of the proposals", _describe_ranking(arena, ranking)),
        ("What was criticized, and what became of it", await arena.collect_issues()),
    )


async def _fill_in_answer(
    outcome: Outcome,
    arena: Discussion,
    judge: Agent,
    work: Sequence[Contribution],
    core: BestWork,
    accounts: Sequence[tuple[str, str]],
    asked: AnswerQuestions,
    *,
    is_first: bool,
) -> tuple[str, AnswerPositions | None]:
    """Fill in what the judge writes, or the core in place of it. Return the text, and which positions the judge names."""
    try:
        answer = await write_from_vote(
            arena.debate,
            judge,
            work,
            Core(core.work, is_first_draft=is_first),
            accounts,
            arena.steering.guidance,
            arena.requirements,
            asked,
        )
    except DebateFailedError as failed:
        outcome.stand_in.CopyFrom(create_stand_in(arena.debate, synthesize.KEY, core, failed, judge.id))
        outcome.description = core.work.text
        return core.work.text, None
    outcome.related.extend(asked.past.list_related(answer.earlier_decisions))
    outcome.description = answer.description
    outcome.details.CopyFrom(create_details(answer, arena.requirements))
    return answer.to_text(), answer.positions


def _describe_ranking(arena: Discussion, ranking: Sequence[RankedProposal]) -> str:
    return "\n".join(
        f"{place}. agent {arena.debate.letter(each.agent_id)}"
        f"{f', {each.score:g} of 10' if each.HasField('score') else ''}{': ' if each.reason else ''}{each.reason}"
        for place, each in enumerate(ranking, start=1)
    )


def _find_core(
    arena: Discussion,
    decision: Decision | None,
    ranking: Sequence[RankedProposal],
    work: Sequence[Contribution],
) -> BestWork:
    """Return the text that is the answer's core: that of the decision, else the judge's first, else the best by its critics."""
    if decision is not None:
        return BestWork(core_text(arena, decision), "it was decided for")
    if ranking:
        return BestWork(arena.transcript.work(ranking[0].agent_id), "the judge ranked it first")
    return choose_best_work(work, chain.from_iterable(arena.transcript.exchanges()))
