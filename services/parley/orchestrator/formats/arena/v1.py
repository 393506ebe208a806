"""The arena, version 1: proposals, critiques over drawn edges, revisions until a rule holds, a vote, and a judge.

Rounds have numbers for good: 0 gathers the context, 1 proposes, 2 criticizes, the next ones revise, then come the
last refinement, the vote and the judge. A round that is not run leaves its number unused.
"""

import asyncio
from functools import partial

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format
from parley.orchestrator.formats.arena.decision import decide
from parley.orchestrator.formats.arena.discussion import (
    CONTEXT_ROUND,
    CRITIQUE_ROUND,
    Discussion,
)
from parley.orchestrator.formats.arena.judge import grouping_agent, nominate
from parley.orchestrator.formats.arena.outcome import answer_parts
from parley.orchestrator.formats.arena.rounds import (
    hold_critiques,
    hold_last_refinement,
    hold_proposals,
    hold_revision,
)
from parley.orchestrator.formats.arena.rules import drafts_end_rounds, rounds_end
from parley.orchestrator.formats.arena.settings import SETTINGS
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.phases import clarify, critique, propose, refine, synthesize
from parley.orchestrator.phases.account import ended_from_outside
from parley.orchestrator.phases.agreement import GROUPING, POSITION
from parley.orchestrator.phases.answer_from_vote import VERIFICATION
from parley.orchestrator.phases.assess import DISCUSSION, SUPPORT
from parley.orchestrator.phases.choose_agents import JUDGE_VOTE, select_team
from parley.orchestrator.phases.judge_proposals import JUDGEMENT
from parley.orchestrator.phases.prompting import SYSTEM_SECTION
from parley.orchestrator.phases.recall import recall
from parley.orchestrator.phases.requirements import REQUIREMENTS, draw_up_requirements
from parley.orchestrator.phases.vote import VOTE
from parley.v1.debate_pb2 import (
    STOP_REASON_ALL_ROUNDS_COMPLETED,
    Outcome,
)
from parley.v1.event_pb2 import (
    RoundsEnded,
)

__all__ = ["V1"]


async def _run(debate: Debate) -> Outcome:
    """Run the debate and return its outcome."""
    if debate.spec.demonstration:
        raise DebateFailedError(
            "DEMONSTRATION_MODEL",
            "the arena asks for structured answers, which this very small model cannot give; use the format `panel`, or"
            " another model",
        )
    async with asyncio.TaskGroup() as tasks:
        return await _hold(Discussion(debate, tasks))


async def _hold(arena: Discussion) -> Outcome:
    """Hold all rounds, and return what they come to."""
    for state in ("START", "INITIALIZING"):
        arena.enter(state)
    await select_team(arena.debate, arena.settings.team)
    await clarify.clarify(arena.debate)
    nominating = arena.tasks.create_task(nominate(arena))
    drawing_up = arena.tasks.create_task(draw_up_requirements(arena.debate))
    async with arena.round(CONTEXT_ROUND):
        arena.past = await recall(arena.debate)
        arena.enter("CONTEXT_READY")
    settled = await hold_proposals(arena)
    arena.judges = await nominating
    arena.group_drafts(partial(grouping_agent, arena))
    arena.requirements = await drawing_up
    ended = settled or await drafts_end_rounds(arena) or await _rounds(arena)
    arena.debate.record_event(f"rounds/ended/{arena.last_revision}", ended)
    if ended.reason == STOP_REASON_ALL_ROUNDS_COMPLETED:
        await hold_last_refinement(arena)
    arena.enter("ROUNDS_COMPLETE")
    return await decide(arena)


async def _rounds(arena: Discussion) -> RoundsEnded:
    """Hold the critiques and the rounds of revision, and return why they ended."""
    for number in range(CRITIQUE_ROUND, arena.last_revision + 1):
        await arena.steer(number)
        if arena.steering.end:
            return ended_from_outside(arena.steering, number - 1)
        before = arena.works()
        async with arena.round(number):
            if number == CRITIQUE_ROUND:
                await hold_critiques(arena, number)
            else:
                await hold_revision(arena, number)
            ended = await rounds_end(arena, number, before)
        if ended is not None:
            return ended
    await arena.steer(arena.last_revision + 1)
    if arena.steering.end:
        return ended_from_outside(arena.steering, arena.last_revision)
    held = arena.settings.revision_rounds
    return RoundsEnded(
        reason=STOP_REASON_ALL_ROUNDS_COMPLETED,
        explanation=f"all {held} rounds of revision were held"
        if held > 1
        else "the one round of revision was held",
    )


V1 = Format(
    name="arena",
    version=1,
    run=_run,
    settings=SETTINGS,
    debater_sections=frozenset(
        {SYSTEM_SECTION, clarify.SECTION, propose.SECTION, critique.SECTION, refine.SECTION}
    ),
    # None but the role of a judge has the last one: its words on who it is are those of one who takes no part.
    judge_sections=frozenset({SYSTEM_SECTION, synthesize.SECTION}),
    concurrency=frozenset({propose.CONCURRENCY, critique.CONCURRENCY, refine.CONCURRENCY}),
    activities=(
        clarify.CLARIFICATION,
        JUDGE_VOTE,
        REQUIREMENTS,
        propose.PROPOSAL,
        critique.CRITIQUE,
        refine.REFINEMENT,
        refine.FINAL_REFINEMENT,
        POSITION,
        GROUPING,
        DISCUSSION,
        SUPPORT,
        VOTE,
        JUDGEMENT,
        synthesize.SYNTHESIS,
        VERIFICATION,
    ),
    answer=answer_parts,
)
