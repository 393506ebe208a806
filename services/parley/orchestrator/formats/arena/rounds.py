"""The rounds from the first critiques to the last refinement: who is asked for what, and what becomes of it."""

import asyncio

from parley.orchestrator.formats.arena.discussion import (
    Discussion,
    Made,
    contributions,
)
from parley.orchestrator.formats.arena.settings import topology_of
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.topology import Edge, RoundParticipants, describe_topology, draw_edges
from parley.orchestrator.phases import critique, refine
from parley.orchestrator.phases.agreement import state_positions
from parley.orchestrator.phases.progress import PhaseMarks
from parley.orchestrator.phases.situation import Situation
from parley.v1.arena_pb2 import (
    DUTY_CRITIC,
)
from parley.v1.event_pb2 import (
    CritiqueEdge,
    TopologyDrawn,
)

__all__ = ["hold_critiques", "hold_last_refinement", "hold_revision"]


def _draw(arena: Discussion, number: int) -> list[Edge]:
    """Return who is asked to criticize whom, and record who criticizes whom in this round."""
    edges = _edges(arena, number)
    drawn = [CritiqueEdge(critic_agent_id=critic, target_agent_id=target) for critic, target in edges]
    arena.debate.record_event(
        f"round/{number}/topology",
        TopologyDrawn(
            round=number, topology=describe_topology(topology_of(arena.settings, number)), edges=drawn
        ),
    )
    return arena.record.unasked(edges)


def _edges(arena: Discussion, number: int) -> tuple[Edge, ...]:
    """Return who criticizes whom in a round, the same at every call while nobody is muted meanwhile."""
    seats = RoundParticipants(
        agents=arena.order,
        critics=[each.id for each in arena.agents(DUTY_CRITIC)],
        authors=[each.agent for each in arena.works()],
        round=number,
        dice=arena.debate.random(f"round/{number}/topology"),
    )
    return draw_edges(topology_of(arena.settings, number), seats)


async def hold_critiques(arena: Discussion, number: int) -> None:
    """Hold critiques that nothing is revised by yet."""
    edges = _draw(arena, number)
    situation = arena.situation(number)
    arena.enter(f"ROUND_{number}_CRITIQUE")
    asked = [_critique(arena, edge, situation) for edge in edges]
    for each in contributions(await arena.all_of(critique.CRITIQUE, number, asked)):
        arena.record.criticize(each)


async def hold_revision(arena: Discussion, number: int, missing: str = "") -> None:
    """Ask for the critiques that are missing of present texts; each author revises its own once its critiques are in."""
    edges, situation = _draw(arena, number), arena.situation(number, missing)
    criticizing = PhaseMarks(arena.debate, number, critique.CRITIQUE, len(edges))
    authors = arena.works()
    refining = PhaseMarks(arena.debate, number, refine.REFINEMENT, len(authors))
    if edges:
        arena.enter(f"ROUND_{number}_CRITIQUE")

    async def criticize(edge: Edge) -> Made:
        criticizing.begin()
        made = await _critique(arena, edge, situation)
        criticizing.end()
        return made

    async with asyncio.TaskGroup() as tasks:
        critiques = {edge: tasks.create_task(criticize(edge)) for edge in edges}

        async def revise(work: Contribution) -> Made:
            asked = [each for (_, target), each in critiques.items() if target == work.agent]
            told = [*arena.record.standing(work.agent), *contributions([await each for each in asked])]
            made = None
            if told or not asked:
                arena.enter(f"ROUND_{number}_REVISION")
                refining.begin()
                made = await refine.refine(arena.debate, arena.by_id[work.agent], work, told, situation)
            refining.end()
            return made

        refinements = [tasks.create_task(revise(each)) for each in authors]
    for each in contributions([task.result() for task in critiques.values()]):
        arena.record.criticize(each)
    revised = contributions([task.result() for task in refinements])
    arena.record.revise(await state_positions(arena.debate, number, revised))


async def _critique(arena: Discussion, edge: Edge, situation: Situation) -> Made:
    critic, target = edge
    return await critique.critique(arena.debate, arena.by_id[critic], arena.record.work(target), situation)


async def hold_last_refinement(arena: Discussion) -> None:
    """Let every author write its proposal as it goes to the vote, with the texts of those that it has an edge with."""
    number = arena.last_revision + 1
    drawn = _edges(arena, arena.last_revision)
    async with arena.round(number):
        situation = arena.situation(number)
        works = arena.works()
        issues = {work.agent: await arena.issues(work.agent) for work in works}
        asked = []
        for work in works:
            near = {agent for edge in drawn if work.agent in edge for agent in edge} - {work.agent}
            asked.append(
                refine.finish(
                    arena.debate,
                    arena.by_id[work.agent],
                    work,
                    [each for each in works if each.agent in near],
                    issues[work.agent],
                    situation,
                )
            )
        made = await arena.all_of(refine.FINAL_REFINEMENT, number, asked)
        arena.record.revise(await state_positions(arena.debate, number, contributions(made)))
