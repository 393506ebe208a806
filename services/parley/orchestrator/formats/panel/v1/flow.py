"""The panel, version 1.

Agents that see the full history start a round together; others go on alone, each with its own line of work.
"""

import asyncio
from collections.abc import Sequence

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format
from parley.orchestrator.formats.panel.outcome import answer_parts, merged_outcome, voted_outcome
from parley.orchestrator.formats.panel.v1 import (
    assess_quality,
    clarified,
    critique,
    propose,
    refine,
    summarize,
    synthesize,
)
from parley.orchestrator.formats.panel.v1.assess_quality import quality_ends_rounds
from parley.orchestrator.formats.panel.v1.outcome import outcome_of
from parley.orchestrator.formats.panel.v1.propose import propose_key
from parley.orchestrator.formats.panel.v1.quoting import quoted
from parley.orchestrator.formats.panel.v1.round import Round, RoundPlan, all_to_all
from parley.orchestrator.formats.panel.v1.settings import SETTINGS
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.conversion import summaries_from_proto
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.phases import clarify
from parley.orchestrator.phases.assess_agreement import agreement_ends_rounds
from parley.orchestrator.phases.group_drafts import group_drafts
from parley.orchestrator.phases.merge import MERGE, OBJECTION, collect_objections, merge
from parley.orchestrator.phases.prompting import SYSTEM_SECTION
from parley.orchestrator.phases.recall import recall
from parley.orchestrator.phases.schemas import documented_schema
from parley.orchestrator.phases.vote import VOTE, hold_vote
from parley.orchestrator.phases.vote_result import surest
from parley.v1.debate_pb2 import Outcome
from parley.v1.panel_pb2 import (
    SYNTHESIS_METHOD_MERGE,
    SYNTHESIS_METHOD_VOTING,
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_FIXED,
    TERMINATION_RULE_QUALITY,
    PanelSettings,
)

__all__ = ["V1"]


async def _run(debate: Debate) -> Outcome:
    """Hold the rounds and return the judge's answer."""
    settings = _settings(debate)
    await clarify.clarify(debate, documented_schema, clarified.briefing)
    past = await recall(debate)
    rounds: list[Round] = []
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, settings.rounds + 1):
            steering = await debate.read_steering(f"round/{number}/control")
            if steering.end and rounds:
                break
            plan = _plan(debate, number, steering, past)
            rounds.append(Round(debate, tasks, plan, tuple(rounds)))
            if number == 1:
                tasks.create_task(_group_drafts(debate, rounds[0]))
            if number < settings.rounds and await _ended(debate, rounds):
                break
    held = _standing(debate, [await each.whole() for each in rounds])
    return await _answered(debate, held, await debate.read_steering("synthesis/control"))


def _settings(debate: Debate) -> PanelSettings:
    assert isinstance(debate.spec.settings, PanelSettings)
    return debate.spec.settings


def _plan(debate: Debate, number: int, steering: Steering, past: str) -> RoundPlan:
    settings = _settings(debate)
    agents = tuple(each for each in debate.participants if each.id not in steering.muted)
    return RoundPlan(
        number=number,
        total=settings.rounds,
        agents=agents,
        edges=all_to_all(agents),
        steering=steering,
        past=past,
        full_history=settings.include_full_history,
        carry_forward=settings.carry_forward,
        summaries=summaries_from_proto(settings.summaries),
    )


async def _group_drafts(debate: Debate, first: Round) -> None:
    await group_drafts(debate, await first.drafts())


async def _ended(debate: Debate, rounds: Sequence[Round]) -> bool:
    """Wait until the next round may begin, and return whether there is to be none."""
    settings, present = _settings(debate), rounds[-1]
    number, threshold = len(rounds), settings.termination.threshold_percent
    rule = settings.termination.rule
    if rule == TERMINATION_RULE_FIXED:
        await (present.whole() if settings.include_full_history else present.first_line())
        return False
    await present.whole()
    work = await present.works()
    if rule == TERMINATION_RULE_CONVERGENCE:
        before = await rounds[-2].works() if number > 1 else ()
        return await agreement_ends_rounds(debate, number, work, before, threshold) is not None
    assert rule == TERMINATION_RULE_QUALITY
    return await quality_ends_rounds(debate, number, work, threshold)


def _standing(debate: Debate, held: Sequence[tuple[Contribution, ...]]) -> Sequence[tuple[Contribution, ...]]:
    """Return the rounds that have something: a limit may have ended the last one before it did."""
    if debate.ending and not any(made.activity == propose.PROPOSAL.name for each in held for made in each):
        steps = tuple(propose_key(1, agent.id) for agent in debate.spec.agents)
        message = "the debate's limit was reached before any proposal stood"
        phase = f"round 1 {propose.PROPOSAL.name}"
        raise DebateFailedError(debate.ending.upper(), message, phase=phase, steps=steps)
    return [each for each in held if each]


async def _answered(debate: Debate, rounds: Sequence[Sequence[Contribution]], steering: Steering) -> Outcome:
    """Return the answer, made in the way that the debate's settings say."""
    method = _settings(debate).synthesis_method
    if method == SYNTHESIS_METHOD_VOTING:
        return await _voted(debate, _final_work(rounds), steering)
    if method == SYNTHESIS_METHOD_MERGE:
        return await _merged(debate, _final_work(rounds), steering)
    return await _judged(debate, rounds, steering)


def _final_work(rounds: Sequence[Sequence[Contribution]]) -> list[Contribution]:
    """Return the last work of each agent that has some."""
    made = [each for held in rounds for each in held if each.activity != critique.CRITIQUE.name]
    return list({each.agent: each for each in made}.values())


async def _voted(debate: Debate, work: Sequence[Contribution], steering: Steering) -> Outcome:
    voters = [agent for agent in debate.participants if agent.id not in steering.muted]
    vote = await hold_vote(debate, voters, work, schema_of=documented_schema, is_asked_again=False)
    author = surest(vote)
    (text,) = (each.text for each in work if each.agent == author)
    return voted_outcome(text, author, vote)


async def _merged(debate: Debate, work: Sequence[Contribution], steering: Steering) -> Outcome:
    judge = debate.spec.judge
    text = await merge(debate, judge, work, steering.guidance)
    agents = [agent for agent in debate.participants if agent.id not in steering.muted]
    objections = await collect_objections(debate, agents, work, text, schema_of=documented_schema)
    return merged_outcome(text, judge.id, objections)


async def _judged(debate: Debate, rounds: Sequence[Sequence[Contribution]], steering: Steering) -> Outcome:
    judge, summaries = debate.spec.judge, summaries_from_proto(_settings(debate).summaries)
    work = [each for each in rounds[-1] if each.activity != critique.CRITIQUE.name]
    summary = await summarize.summarize_last_round(debate, judge, work, summaries)
    material = summary or quoted(debate.letter, [each for held in rounds for each in held])
    worked = {each.agent for held in rounds for each in held if each.activity != critique.CRITIQUE.name}
    judged = [agent.id for agent in debate.participants if agent.id in worked]
    answer = await synthesize.synthesize(debate, material, judged, steering.guidance)
    return outcome_of(answer, judge.id, [(agent, debate.letter(agent)) for agent in judged])


V1 = Format(
    name="panel",
    version=1,
    run=_run,
    settings=SETTINGS,
    debater_sections=frozenset(
        {
            SYSTEM_SECTION,
            clarify.SECTION,
            propose.SECTION,
            critique.SECTION,
            refine.SECTION,
            summarize.SECTION,
        }
    ),
    judge_sections=frozenset({SYSTEM_SECTION, summarize.SECTION, synthesize.SECTION, assess_quality.SECTION}),
    concurrency=frozenset({propose.CONCURRENCY, critique.CONCURRENCY, refine.CONCURRENCY}),
    activities=(
        clarify.CLARIFICATION,
        summarize.SUMMARY,
        propose.PROPOSAL,
        critique.CRITIQUE,
        refine.REFINEMENT,
        assess_quality.ASSESSMENT,
        synthesize.SYNTHESIS,
        VOTE,
        MERGE,
        OBJECTION,
    ),
    answer=answer_parts,
)
