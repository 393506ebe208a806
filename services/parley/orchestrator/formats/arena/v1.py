"""The arena, version 1: proposals, critiques over drawn edges, revisions until a rule holds, a vote, and a judge.

Rounds have numbers for good: 0 gathers the context, 1 proposes, 2 criticizes, the next ones revise, then come the
last refinement, the vote and the judge. A round that is not run leaves its number unused.
"""

import asyncio
from functools import partial

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format
from parley.orchestrator.formats.arena.conclusion import conclude
from parley.orchestrator.formats.arena.discussion import (
    CONTEXT_ROUND,
    CRITIQUE_ROUND,
    Discussion,
)
from parley.orchestrator.formats.arena.judge import grouping_agent, nominate_judges
from parley.orchestrator.formats.arena.outcome import answer_parts
from parley.orchestrator.formats.arena.rounds import (
    run_critiques,
    run_last_refinement,
    run_proposals,
    run_revision,
)
from parley.orchestrator.formats.arena.rules import find_end_by_drafts, find_end_by_rules
from parley.orchestrator.formats.arena.settings import SETTINGS
from parley.orchestrator.formats.arena.verdict import verdict
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.phases import clarify, critique, propose, refine, synthesize
from parley.orchestrator.phases.account import end_from_outside
from parley.orchestrator.phases.agreement import POSITION
from parley.orchestrator.phases.answer_from_vote import VERIFICATION
from parley.orchestrator.phases.assess import DISCUSSION, SUPPORT
from parley.orchestrator.phases.choose_agents import JUDGE_VOTE, select_team
from parley.orchestrator.phases.grouping import GROUPING
from parley.orchestrator.phases.judge_proposals import JUDGEMENT
from parley.orchestrator.phases.passages import find_passages
from parley.orchestrator.phases.patterns import recall_patterns
from parley.orchestrator.phases.prompting import SYSTEM_SECTION
from parley.orchestrator.phases.recall import recall
from parley.orchestrator.phases.requirements import REQUIREMENTS, list_requirements
from parley.orchestrator.phases.research import research
from parley.orchestrator.phases.vote import VOTE
from parley.v1.debate_pb2 import (
    STOP_REASON_ALL_ROUNDS_COMPLETED,
    Outcome,
)
from parley.v1.event_pb2 import (
    RoundsEnded,
)


async def _run(debate: Debate) -> Outcome:
    """Run the debate and return its outcome."""
    if debate.is_demonstration:
        raise DebateFailedError(
            "DEMONSTRATION_MODEL",
            "the arena asks for structured answers, which this very small model cannot give; use the format `panel`, or"
            " another model",
        )
    async with asyncio.TaskGroup() as tasks:
        return await _run_debate(Discussion(debate, tasks))


async def _run_debate(arena: Discussion) -> Outcome:
    """Hold all rounds, and return what they come to."""
    for state in ("START", "INITIALIZING"):
        arena.enter_state(state)
    await select_team(arena.debate, arena.settings.team)
    arena.expect_vote()
    await clarify.clarify(arena.debate)
    await find_passages(arena.debate)
    nominating = arena.tasks.create_task(nominate_judges(arena))
    drawing_up = arena.tasks.create_task(list_requirements(arena.debate))
    async with arena.run_round(CONTEXT_ROUND):
        past = arena.tasks.create_task(recall(arena.debate))
        patterns = arena.tasks.create_task(recall_patterns(arena.debate))
        await research(arena.debate, past, patterns, nominating, drawing_up)
        arena.past, arena.patterns = await past, await patterns
        arena.enter_state("CONTEXT_READY")
    settled = await run_proposals(arena)
    arena.judges = await nominating
    arena.start_grouping_drafts(partial(grouping_agent, arena))
    arena.requirements = await drawing_up
    ended = settled or await find_end_by_drafts(arena) or await _run_rounds(arena)
    arena.debate.record_event(f"rounds/ended/{arena.last_revision}", ended)
    if ended.reason == STOP_REASON_ALL_ROUNDS_COMPLETED:
        await run_last_refinement(arena)
    arena.enter_state("ROUNDS_COMPLETE")
    return await conclude(arena)


async def _run_rounds(arena: Discussion) -> RoundsEnded:
    """Hold the critiques and the rounds of revision, and return why they ended."""
    for number in range(CRITIQUE_ROUND, arena.last_revision + 1):
        await arena.update_steering(number)
        if arena.steering.end:
            return end_from_outside(arena.steering, number - 1)
        before = arena.works()
        async with arena.run_round(number):
            if number == CRITIQUE_ROUND:
                await run_critiques(arena, number)
            else:
                await run_revision(arena, number)
            ended = await find_end_by_rules(arena, number, before)
        if ended is not None:
            return ended
    await arena.update_steering(arena.last_revision + 1)
    if arena.steering.end:
        return end_from_outside(arena.steering, arena.last_revision)
    rounds = arena.settings.revision_rounds
    return RoundsEnded(
        reason=STOP_REASON_ALL_ROUNDS_COMPLETED,
        explanation=f"all {rounds} rounds of revision were held"
        if rounds > 1
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
    verdict=verdict,
)
