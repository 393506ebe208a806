"""The panel, version 1.

Agents that see the full history start a round together; others go on alone, each with its own line of work. Recalled debates
and requirements are looked for while the first drafts are written, which do not wait for them.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format
from parley.orchestrator.formats.panel.demonstration import run_demonstration
from parley.orchestrator.formats.panel.effect import effect_of_answer, effect_of_merge, effect_of_work
from parley.orchestrator.formats.panel.estimate import estimate_panel
from parley.orchestrator.formats.panel.outcome import (
    answer_parts,
    outcome_of,
    outcome_of_merge,
    outcome_of_stand_in,
    outcome_of_vote,
    verdict,
)
from parley.orchestrator.formats.panel.rounds import GroupedDrafts, RoundsResult
from parley.orchestrator.formats.panel.settings import SETTINGS
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.best_work import choose_best_work
from parley.orchestrator.model.contributions import Contribution, texts_of
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.open_issues import issues_of
from parley.orchestrator.model.tasks import Prompt, user_part
from parley.orchestrator.phases import assess, clarify, critique, propose, refine, summarize, synthesize
from parley.orchestrator.phases.account import (
    describe_rounds,
    end_from_outside,
    end_of_all_rounds,
    end_of_drafts,
)
from parley.orchestrator.phases.agreement import (
    POSITION,
    find_end_by_agreement,
    group_drafts,
    state_positions,
)
from parley.orchestrator.phases.answer_questions import AnswerQuestions
from parley.orchestrator.phases.assess import find_end_by_quality
from parley.orchestrator.phases.count_votes import most_confident_choice
from parley.orchestrator.phases.disputes import find_end_undisputed
from parley.orchestrator.phases.effect import ask_positions
from parley.orchestrator.phases.grouping import GROUPING
from parley.orchestrator.phases.history import available_tokens, count_prompt_tokens
from parley.orchestrator.phases.merge import MERGE, OBJECTION, collect_objections, merge
from parley.orchestrator.phases.passages import find_passages
from parley.orchestrator.phases.past import PastQuestion
from parley.orchestrator.phases.patterns import recall_patterns
from parley.orchestrator.phases.prompting import SYSTEM_SECTION, preamble, quotation
from parley.orchestrator.phases.propose import no_proposal_failure
from parley.orchestrator.phases.recall import recall
from parley.orchestrator.phases.requirements import REQUIREMENTS, Requirements, list_requirements
from parley.orchestrator.phases.research import research
from parley.orchestrator.phases.round import Round, RoundPlan, all_to_all
from parley.orchestrator.phases.situation import describe_agents, history_prompt, quote_work
from parley.orchestrator.phases.stand_in import create_stand_in
from parley.orchestrator.phases.vote import VOTE, run_vote
from parley.runtime.contract_settings import with_defaults
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import RoundsEnded
from parley.v1.memory_pb2 import CritiquePattern, PastDebate
from parley.v1.panel_pb2 import (
    EFFORT_QUICK,
    SYNTHESIS_METHOD_MERGE,
    SYNTHESIS_METHOD_VOTING,
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_FIXED,
    TERMINATION_RULE_QUALITY,
    TERMINATION_RULE_UNDISPUTED,
    PanelSettings,
    SynthesisMethod,
)

_ANSWER_KEY = "answer"
_SCHEMA_TOKENS = 1000
"""Tokens of the judge's instruction and of the form that it is to fill."""


async def _run(debate: Debate) -> Outcome:
    """Run the rounds and return the answer."""
    if debate.is_demonstration:
        return await run_demonstration(debate)
    await clarify.clarify(debate)
    if _settings(debate).synthesis_method == SYNTHESIS_METHOD_VOTING:
        debate.expect_answer_calls(len(debate.participants))
    return await _create_answer(debate, await _run_rounds(debate))


async def _run_rounds(debate: Debate) -> RoundsResult:
    """Run the rounds."""
    settings = _settings(debate)
    rounds: list[Round] = []
    stated: list[Sequence[Contribution]] = []
    ended: RoundsEnded | None = None
    groupings: list[asyncio.Task[GroupedDrafts]] = []
    await find_passages(debate)
    async with asyncio.TaskGroup() as tasks:
        past = tasks.create_task(recall(debate))
        patterns = tasks.create_task(recall_patterns(debate))
        requirements = tasks.create_task(list_requirements(debate))
        await research(debate, past, patterns, requirements)
        for number in range(1, settings.rounds + 1):
            steering = await debate.read_steering(f"round/{number}/control")
            if steering.end and rounds:
                ended = end_from_outside(steering, number - 1)
                break
            plan = _plan_round(debate, number, steering, past, patterns, requirements)
            rounds.append(Round(debate, tasks, plan, tuple(rounds)))
            groupings.append(tasks.create_task(_group_drafts(debate, rounds)))
            if number < settings.rounds:
                ended = await _find_end(debate, rounds, requirements, stated, groupings[-1])
            if ended:
                break
    made = [each for result in rounds for each in await result.collect_all()]
    failed = [each for result in rounds for each in await result.list_failed()]
    _check_has_proposal(debate, made)
    steering = await debate.read_steering("synthesis/control")
    if ended is None:
        ended = end_from_outside(steering, len(rounds)) if steering.limit else _end_of_rounds(debate)
    debate.record_event(f"rounds/ended/{len(rounds)}", ended)
    first = groupings[0].result()
    return RoundsResult(made, first, failed, len(rounds), await requirements, ended, steering, past.result())


def _end_of_rounds(debate: Debate) -> RoundsEnded:
    settings = _settings(debate)
    return end_of_drafts() if settings.effort == EFFORT_QUICK else end_of_all_rounds(settings.rounds)


def _settings(debate: Debate) -> PanelSettings:
    assert isinstance(debate.settings, PanelSettings)
    return debate.settings


def _plan_round(
    debate: Debate,
    number: int,
    steering: Steering,
    past: asyncio.Task[Sequence[PastDebate]],
    patterns: asyncio.Task[Sequence[CritiquePattern]],
    requirements: asyncio.Task[Requirements],
) -> RoundPlan:
    settings = _settings(debate)
    agents = tuple(each for each in debate.participants if each.id not in steering.muted)
    drafts_only = settings.effort == EFFORT_QUICK
    return RoundPlan(
        number=number,
        total=settings.rounds,
        agents=agents,
        edges=() if drafts_only else all_to_all(agents),
        steering=steering,
        past=past,
        patterns=patterns,
        requirements=requirements,
        full_history=settings.include_full_history,
        carry_forward=settings.carry_forward,
        summaries=with_defaults(settings.summaries),
        drafts_only=drafts_only,
    )


async def _group_drafts(debate: Debate, rounds: Sequence[Round]) -> GroupedDrafts:
    """Return how the drafts of the last round group: the first drafts, or those on which it depends whether the rounds end."""
    settings, number, present = _settings(debate), len(rounds), rounds[-1]
    decides = settings.termination.rule == TERMINATION_RULE_UNDISPUTED and number < settings.rounds
    if not decides and number > 1:
        return GroupedDrafts()
    drafts = await present.collect_drafts()
    if len(drafts) < 2:  # one alone agrees with no agent
        return GroupedDrafts(drafts)
    stated = await state_positions(debate, number, drafts, "draft-position")
    asked = partial(_grouping_agent, debate, present.agents) if decides else None
    return GroupedDrafts(stated, await group_drafts(debate, stated, asked, number=number))


async def _find_end(
    debate: Debate,
    rounds: Sequence[Round],
    requirements: asyncio.Task[Requirements],
    stated: list[Sequence[Contribution]],
    grouping: asyncio.Task[GroupedDrafts],
) -> RoundsEnded | None:
    """Wait until the next round may begin, and return why there is to be none; None if there is.

    `stated` holds the work of the rounds before with its positions, and gets that of this one if the rule needs it.
    """
    settings, present = _settings(debate), rounds[-1]
    number, threshold = len(rounds), settings.termination.threshold_percent
    rule = settings.termination.rule
    if rule == TERMINATION_RULE_FIXED and not settings.include_full_history:
        await present.wait_for_first_line()
        return None
    made, ended = await present.collect_all(), await present.find_end()
    if ended or rule == TERMINATION_RULE_FIXED:
        return ended
    if rule == TERMINATION_RULE_UNDISPUTED:
        drafts, groups = await present.collect_drafts(), (await grouping).groups
        return find_end_undisputed(debate, number, drafts, groups, made)
    if rule == TERMINATION_RULE_CONVERGENCE:
        stated.append(await state_positions(debate, number, await present.collect_works()))
        before = stated[-2] if number > 1 else ()
        asked = partial(_grouping_agent, debate, present.agents)
        return await find_end_by_agreement(debate, number, stated[-1], before, threshold, made, asked)
    assert rule == TERMINATION_RULE_QUALITY
    work = await present.collect_works()
    return await find_end_by_quality(debate, number, work, threshold, (await requirements).to_prompt_text())


def _grouping_agent(debate: Debate, heard: Sequence[Agent]) -> Agent:
    asked = _settings(debate).termination.grouping_agent_id
    return next((each for each in heard if each.id == asked), debate.judge)


def _check_has_proposal(debate: Debate, made: Sequence[Contribution]) -> None:
    """Fail if a limit ended the debate before there was anything."""
    if debate.ending and not any(each.activity == propose.PROPOSAL.name for each in made):
        raise no_proposal_failure(debate, (agent.id for agent in debate.agents))


async def _create_answer(debate: Debate, result: RoundsResult) -> Outcome:
    """Return the answer, made in the way that the debate's settings say; if none is made, the best work stands in for it."""
    method = _settings(debate).synthesis_method
    try:
        return await _make_answer(debate, result, method)
    except DebateFailedError as failed:
        best = choose_best_work(result.finals, result.contributions, result.first.groups)
        writer = "" if method == SYNTHESIS_METHOD_VOTING else debate.judge.id
        stand_in = create_stand_in(debate, _ANSWER_KEY, best, failed, writer)
        outcome = outcome_of_stand_in(best.work.text, stand_in)
        outcome.effect.CopyFrom(effect_of_work(debate, result, best.work.agent))
        return outcome


async def _make_answer(debate: Debate, result: RoundsResult, method: SynthesisMethod.ValueType) -> Outcome:
    if method == SYNTHESIS_METHOD_VOTING:
        return await _answer_by_vote(debate, result)
    if method == SYNTHESIS_METHOD_MERGE:
        return await _answer_by_merge(debate, result)
    return await _answer_by_judge(debate, result)


def _active_agents(debate: Debate, result: RoundsResult) -> list[Agent]:
    """Return the agents that are not muted."""
    return [agent for agent in debate.participants if agent.id not in result.steering.muted]


async def _answer_by_vote(debate: Debate, result: RoundsResult) -> Outcome:
    vote = await run_vote(
        debate, _active_agents(debate, result), result.finals, result.requirements.to_prompt_text()
    )
    author = most_confident_choice(vote)
    (text,) = (each.text for each in result.finals if each.agent == author)
    outcome = outcome_of_vote(text, author, vote)
    outcome.effect.CopyFrom(effect_of_work(debate, result, author, vote))
    return outcome


async def _answer_by_merge(debate: Debate, result: RoundsResult) -> Outcome:
    judge = debate.judge
    work, requirements = result.finals, result.requirements.to_prompt_text()
    material = await _gather_material(debate, judge, result)
    guidance = result.steering.guidance
    text = await merge(debate, judge, work, guidance, requirements=requirements, material=material)
    agents = _active_agents(debate, result)
    objections = await collect_objections(debate, agents, work, text, requirements=requirements)
    outcome = outcome_of_merge(text, judge.id, objections)
    outcome.effect.CopyFrom(effect_of_merge(debate, result))
    return outcome


async def _answer_by_judge(debate: Debate, result: RoundsResult) -> Outcome:
    judge = debate.judge
    worked = {each.agent for each in result.finals}
    judged = [agent.id for agent in debate.participants if agent.id in worked]
    asked = AnswerQuestions(ask_positions(debate, result.stands), PastQuestion(result.past))
    required = result.requirements
    material = (
        *await _gather_material(debate, judge, result, asked.to_prompt()),
        *quote_work(debate, result.finals, "Final proposal"),
    )
    guidance = result.steering.guidance
    works = [each.text for each in result.finals]
    answer = await synthesize.synthesize(debate, material, judged, guidance, required, asked, works)
    letters = [(agent, debate.letter(agent)) for agent in judged]
    outcome = outcome_of(answer, judge.id, letters, required)
    outcome.related.extend(asked.past.list_related(answer.earlier_decisions))
    outcome.effect.CopyFrom(effect_of_answer(debate, result, asked.positions, answer, outcome.details))
    return outcome


async def _gather_material(debate: Debate, judge: Agent, result: RoundsResult, more: Prompt = ()) -> Prompt:
    """Return what one who writes the answer reads before the final proposals, which are left out last; `more`: after them."""
    start, room = await in_thread_if_large(
        texts_of(result.contributions), partial(_judge_preamble, debate, judge, result, more)
    )
    summaries = with_defaults(_settings(debate).summaries)
    earlier = await summarize.summarize_for_judge(debate, judge, result.earlier, room, summaries)
    return (*start, *history_prompt(debate, judge, earlier))


def _judge_preamble(debate: Debate, judge: Agent, result: RoundsResult, more: Prompt) -> tuple[Prompt, int]:
    """Return what it reads first, and the tokens that are left for the history."""
    total = _settings(debate).rounds
    account = describe_rounds(debate, result.rounds, total, result.end, result.failed, result.steering.muted)
    if _settings(debate).effort == EFFORT_QUICK:
        account += "\nNo agent has examined the drafts: look yourself for what is wrong or missing in them."
    issues = issues_of(debate.letter, result.by_round)
    start = (
        user_part(describe_agents(debate, are_named=False)),
        user_part(account),
        *([quotation("What was criticized, and what became of it", issues)] if issues else []),
    )
    finals = quote_work(debate, result.finals, "Final proposal")
    other_parts = (
        *preamble(debate, judge, result.steering.guidance, requirements=result.requirements.to_prompt_text()),
        *start,
        *finals,
        *more,
    )
    other_tokens = count_prompt_tokens(other_parts, judge.context_tokens) + _SCHEMA_TOKENS
    return start, available_tokens(judge.context_tokens, 0, other_tokens)


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
    judge_sections=frozenset({SYSTEM_SECTION, summarize.SECTION, synthesize.SECTION, assess.SECTION}),
    concurrency=frozenset({propose.CONCURRENCY, critique.CONCURRENCY, refine.CONCURRENCY}),
    activities=(
        clarify.CLARIFICATION,
        REQUIREMENTS,
        summarize.SUMMARY,
        propose.PROPOSAL,
        critique.CRITIQUE,
        refine.REFINEMENT,
        assess.ASSESSMENT,
        POSITION,
        GROUPING,
        synthesize.SYNTHESIS,
        VOTE,
        MERGE,
        OBJECTION,
    ),
    answer=answer_parts,
    estimate=estimate_panel,
    verdict=verdict,
    is_analysed=lambda spec: spec.panel.effort != EFFORT_QUICK,
)
