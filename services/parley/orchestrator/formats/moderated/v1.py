"""The moderated debate, version 1: analysis, perspectives, rounds with a checkpoint after each, and a decision that is approved."""

import asyncio
import re
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format
from parley.orchestrator.formats.moderated.analysis import AnalysisResult, analyse
from parley.orchestrator.formats.moderated.argue import CONCURRENCY
from parley.orchestrator.formats.moderated.checkpoint import describe_checkpoint
from parley.orchestrator.formats.moderated.decide import decide
from parley.orchestrator.formats.moderated.discussion import Discussion
from parley.orchestrator.formats.moderated.follow_up import offer_issue
from parley.orchestrator.formats.moderated.outcome import answer_parts, verdict
from parley.orchestrator.formats.moderated.perspectives import (
    SelectionCriteria,
    Viewpoint,
    catalogue,
    debater_count,
    select_perspectives,
)
from parley.orchestrator.formats.moderated.rounds import Verdict, run_round
from parley.orchestrator.formats.moderated.settings import SETTINGS
from parley.orchestrator.formats.moderated.words import (
    ANALYSIS,
    ARGUMENT,
    COMPLETION,
    DECISION,
    EVALUATION,
    REBUTTAL,
    REPLY,
    describe_debater,
)
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.spec import DEFAULT_LIMITS, with_default_limits
from parley.orchestrator.model.times import duration
from parley.orchestrator.phases import summarize
from parley.orchestrator.phases.account import (
    end_for_want_of_agents,
    end_from_outside,
    end_of_all_rounds,
)
from parley.orchestrator.phases.passages import find_passages
from parley.orchestrator.phases.prompting import SYSTEM_SECTION, quotation
from parley.orchestrator.phases.recall import recall
from parley.orchestrator.phases.research import research
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import STOP_REASON_PERSON, DebateLimits, Direction, Outcome
from parley.v1.event_pb2 import RoundsEnded, TeamSelected


async def _ask_direction(
    discussion: Discussion, verdict: Verdict, ended: RoundsEnded | None
) -> RoundsEnded | None:
    """Ask a person for the direction, and return why the rounds end; None if there is another one.

    `end`: why they would end without a word. Guidance lets a debate go on that the moderator would end, as far as
    there are rounds.
    """
    debate, number = discussion.debate, len(discussion.rounds)
    discussion.enter_state("checkpoint", f"round/{number}")
    text = describe_checkpoint(discussion, verdict, ended)
    closed = await debate.run_checkpoint(f"round/{number}/checkpoint", Direction(text=text))
    await discussion.update_steering(f"round/{number}/directed")
    if discussion.steering.end:
        return ended or end_from_outside(discussion.steering, number)
    is_guided = closed.intervention.HasField("guide")
    return None if is_guided and number < discussion.settings.max_rounds else ended


_ROLE: Final = "debater"
_MAX_ID: Final = 32
_NOT_LENT: Final = (
    "system_prompt",
    "summary_prompt",
    "clarification_prompt",
    "evaluation_prompt",
    "own_role",
)


async def _run(debate: Debate) -> Outcome:
    """Run the debate and return its outcome."""
    if debate.is_demonstration:
        raise DebateFailedError(
            "DEMONSTRATION_MODEL",
            "a moderated debate asks for structured answers, which this very small model cannot give; use the format `panel`,"
            " or another model",
        )
    debate.set_participants(())
    debate.record_event("debaters/seated", TeamSelected())
    discussion = Discussion(debate)
    discussion.enter_state("analyzing", "analysis")
    known = catalogue(discussion.settings.custom_perspectives)
    asks = discussion.settings.checkpoints or debate.spec.HasField("clarifications")
    await find_passages(debate)
    async with asyncio.TaskGroup() as tasks:
        past = tasks.create_task(recall(debate))
        analysing = tasks.create_task(analyse(debate, known, asks=asks))
        await research(debate, past, analysing)
    discussion.analysis, discussion.past = analysing.result(), past.result()
    await _assign_perspectives(discussion, known)
    ended = await _run_rounds(discussion)
    debate.record_event(f"rounds/ended/{len(discussion.rounds)}", ended)
    outcome = await decide(discussion, ended)
    await offer_issue(discussion, outcome.moderated)
    discussion.enter_state("complete", "debate")
    return outcome


async def _assign_perspectives(discussion: Discussion, known: tuple[Viewpoint, ...]) -> None:
    """Choose the perspectives, and let a debater join for each; the specification's agents lend their routes in turn."""
    debate, analysed = discussion.debate, discussion.analysis
    assert analysed is not None
    found = analysed.analysis
    question = "\n".join([debate.spec.question, *analysed.answered])
    occasion = SelectionCriteria(question, found.domain, found.constraints, found.perspectives)
    wanted = discussion.settings.perspectives or found.debater_count
    chosen = select_perspectives(known, occasion, debater_count(known, wanted))
    taken = {each.id for each in (*debate.agents, debate.judge)}
    for place, viewpoint in enumerate(chosen):
        lender = debate.agents[place % len(debate.agents)]
        agent = _create_debater(lender, viewpoint, taken)
        taken.add(agent.id)
        others = [each for each in chosen if each is not viewpoint]
        instructions = {SYSTEM_SECTION: describe_debater(viewpoint, others)}
        await debate.add_participant(f"join/{agent.id}", agent, instructions)
        discussion.viewpoints[agent.id] = viewpoint
    debate.briefing = _create_briefing(discussion, analysed)


def _create_debater(lender: Agent, viewpoint: Viewpoint, taken: set[str]) -> Agent:
    agent = Agent()
    agent.CopyFrom(lender)
    for name in _NOT_LENT:
        agent.ClearField(name)
    agent.id, agent.name, agent.role = _create_id(viewpoint.name, taken), viewpoint.name, _ROLE
    return agent


def _create_id(name: str, taken: set[str]) -> str:
    """Return a perspective's name as an agent's id that no agent has yet."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:_MAX_ID].strip("-") or "perspective"
    found, number = plain, 1
    while found in taken:
        number += 1
        found = f"{plain[: _MAX_ID - 3].rstrip('-')}-{number}"
    return found


def _create_briefing(discussion: Discussion, analysed: AnalysisResult) -> str:
    """Return what every prompt says besides the question."""
    lines = [*analysed.answers]
    read: list[str] = []
    for title, points in (
        ("What the question implies:", analysed.analysis.constraints),
        ("Assumed, since nobody said it:", analysed.assumed),
    ):
        read += [title, *(f"- {each}" for each in points)] if points else []
    lines += [quotation("What the moderator reads in the question", "\n".join(read)).text] if read else []
    lines.append("The perspectives in this debate:")
    lines += [f"- {discussion.name_of(each)}" for each in discussion.viewpoints]
    return "\n".join(lines)


async def _run_rounds(discussion: Discussion) -> RoundsEnded:
    """Hold rounds until the moderator, a person or a limit ends them, and return why they ended."""
    analysed, last = discussion.analysis, discussion.settings.max_rounds
    assert analysed is not None
    put = analysed.analysis.opening.strip() or discussion.debate.spec.question
    await discussion.update_steering("round/1/control")
    while True:
        try:
            verdict = await run_round(discussion, put)
        except DebateFailedError as lost:
            if lost.steps_to_wait_for or len(discussion.rounds) == 1:
                raise
            return end_for_want_of_agents(len(discussion.rounds), lost)
        number = len(discussion.rounds)
        ended = verdict.end or (end_of_all_rounds(number) if number >= last else None)
        await discussion.update_steering(f"round/{number}/after")
        if discussion.steering.end:
            return verdict.end or end_from_outside(discussion.steering, number)
        if discussion.settings.checkpoints:
            ended = await _ask_direction(discussion, verdict, ended)
        if ended is not None:
            return ended
        if len(discussion.active_debaters) < 2:
            return RoundsEnded(
                reason=STOP_REASON_PERSON,
                explanation=f"a person muted all debaters but one after round {number}",
            )
        put = verdict.next_prompt


V1 = Format(
    name="moderated",
    version=1,
    run=_run,
    settings=SETTINGS,
    limits=with_default_limits(DebateLimits(round=duration(120), total=duration(1800)), DEFAULT_LIMITS),
    debater_sections=frozenset({SYSTEM_SECTION}),
    judge_sections=frozenset({SYSTEM_SECTION, summarize.SECTION}),
    concurrency=frozenset({CONCURRENCY}),
    activities=(ANALYSIS, ARGUMENT, REBUTTAL, EVALUATION, COMPLETION, REPLY, summarize.SUMMARY, DECISION),
    answer=answer_parts,
    verdict=verdict,
)
