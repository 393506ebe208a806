"""The rounds from the first proposals to the last refinement: which agent is asked for what, and what is recorded of it.

Proposals are asked for at once, or from the best agent on until what they say is probable enough.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from parley.orchestrator.formats.arena.discussion import PROPOSAL_ROUND, Discussion, contributions
from parley.orchestrator.formats.arena.judge import grouping_agent
from parley.orchestrator.formats.arena.rules import probability_finding
from parley.orchestrator.formats.arena.settings import topology_of
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.stopping import asking_order
from parley.orchestrator.model.topology import Edge, RoundParticipants, describe_topology, draw_edges
from parley.orchestrator.phases import critique, propose, refine
from parley.orchestrator.phases.agreement import FIRST_DRAFT_VOTE, compute_draft_groups, state_positions
from parley.orchestrator.phases.count_votes import VoteTerms
from parley.orchestrator.phases.kept_round import Made
from parley.orchestrator.phases.progress import PhaseMarks
from parley.orchestrator.phases.propose import check_quorum, no_proposal_failure
from parley.orchestrator.phases.situation import Situation
from parley.orchestrator.phases.vote import fetch_vote_weights
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import DUTY_CRITIC, DUTY_PROPOSER
from parley.v1.debate_pb2 import STOP_REASON_PROBABLE_ENOUGH
from parley.v1.event_pb2 import CritiqueEdge, RoundAssessed, RoundsEnded, StepFailed, TopologyDrawn
from parley.v1.voting_pb2 import VOTE_WEIGHTS_ACCURACY

_ASKING: Final = VoteTerms(
    weighted_by=VOTE_WEIGHTS_ACCURACY, key=f"round/{PROPOSAL_ROUND}/asking", round=PROPOSAL_ROUND
)
"""How agents are weighed that are asked one after the other: by the log-odds of being right, which a posterior is made of."""


async def run_proposals(arena: Discussion) -> RoundsEnded | None:
    """Ask proposers for their proposals; return why no round follows, None if one does."""
    await arena.update_steering(PROPOSAL_ROUND)
    arena.enter_state("GENERATING_PROPOSALS")
    authors = arena.agents(DUTY_PROPOSER)
    ended = None
    async with arena.run_round(PROPOSAL_ROUND):
        if arena.settings.stopping.sequential:
            ended = await _propose_in_sequence(arena, authors)
        else:
            await _propose_in_parallel(arena, authors)
    arena.enter_state("PROPOSALS_COMPLETE")
    return ended


async def _propose_in_parallel(arena: Discussion, authors: Sequence[Agent]) -> None:
    situation = arena.create_situation(PROPOSAL_ROUND)
    asked = [propose.propose(arena.debate, each, None, situation) for each in authors]
    made = await arena.run_phase(propose.PROPOSAL, PROPOSAL_ROUND, asked)
    _check_proposals(arena, dict(zip((each.id for each in authors), made, strict=True)))
    await _record_proposals(arena, made)


async def _propose_in_sequence(arena: Discussion, authors: Sequence[Agent]) -> RoundsEnded | None:
    """Ask the best rated first, and the next ones only while no position is probable enough."""
    weights = await fetch_vote_weights(arena.debate, authors, _ASKING)
    situation = arena.create_situation(PROPOSAL_ROUND)
    marks = PhaseMarks(arena.debate, PROPOSAL_ROUND, propose.PROPOSAL, len(authors))
    made: dict[str, Made] = {}
    ended = None
    for group in asking_order(weights, [each.id for each in authors]):
        asked = await arena.run_in_parallel(
            [_propose(arena, marks, arena.by_id[each], situation) for each in group]
        )
        made |= zip(group, asked, strict=True)
        await _record_proposals(arena, asked)
        ended = await _is_probable_enough(
            arena, weights, [each.id for each in authors if each.id not in made]
        )
        if ended is not None:
            break
    for _ in range(len(authors) - len(made)):
        marks.mark_end()
    _check_proposals(arena, made)
    return ended


async def _propose(arena: Discussion, marks: PhaseMarks, author: Agent, situation: Situation) -> Made:
    marks.mark_start()
    made = await propose.propose(arena.debate, author, None, situation)
    marks.mark_end()
    return made


async def _record_proposals(arena: Discussion, made: Sequence[Made]) -> None:
    for each in await state_positions(arena.debate, PROPOSAL_ROUND, contributions(made)):
        arena.transcript.add_proposal(each)


async def _is_probable_enough(
    arena: Discussion, weights: Mapping[str, float], left: Sequence[str]
) -> RoundsEnded | None:
    """Return that no round follows, and leave out who was not asked, if a position is probable enough."""
    work = arena.works()
    if len(work) < 2:
        return None
    key = f"{FIRST_DRAFT_VOTE.name}/of-{len(work)}"
    drafts = await compute_draft_groups(arena.debate, work, key, partial(grouping_agent, arena))
    found = RoundAssessed(finding="what the first drafts hold could not be told")
    if not isinstance(drafts, StepFailed):
        arena.known_drafts = drafts
        found = probability_finding(drafts, weights, arena.settings.stopping)
    found.round = PROPOSAL_ROUND
    if found.ends_rounds and left:
        found.finding += f"; not asked: {', '.join(left)}"
    arena.debate.record_event(f"{_ASKING.key}/of-{len(work)}/finding", found)
    if not found.ends_rounds:
        return None
    arena.skipped_agents = frozenset(left)
    return RoundsEnded(reason=STOP_REASON_PROBABLE_ENOUGH, explanation=found.finding)


def _check_proposals(arena: Discussion, made: Mapping[str, Made]) -> None:
    check_quorum(arena.debate, PROPOSAL_ROUND, made)
    if arena.debate.ending and not any(isinstance(each, Contribution) for each in made.values()):
        raise no_proposal_failure(arena.debate, made)


def _draw_edges(arena: Discussion, number: int) -> list[Edge]:
    """Return who is asked to criticize whom, and record who criticizes whom in this round."""
    edges = _choose_edges(arena, number)
    drawn = [CritiqueEdge(critic_agent_id=critic, target_agent_id=target) for critic, target in edges]
    arena.debate.record_event(
        f"round/{number}/topology",
        TopologyDrawn(
            round=number, topology=describe_topology(topology_of(arena.settings, number)), edges=drawn
        ),
    )
    return arena.transcript.missing_edges(edges)


def _choose_edges(arena: Discussion, number: int) -> tuple[Edge, ...]:
    """Return who criticizes whom in a round, the same at every call while no agent is muted meanwhile."""
    seats = RoundParticipants(
        agents=arena.order,
        critics=[each.id for each in arena.agents(DUTY_CRITIC)],
        authors=[each.agent for each in arena.works()],
        round=number,
        dice=arena.debate.random(f"round/{number}/topology"),
    )
    return draw_edges(topology_of(arena.settings, number), seats)


async def run_critiques(arena: Discussion, number: int) -> None:
    """Hold critiques that nothing is revised by yet."""
    edges = _draw_edges(arena, number)
    situation = arena.create_situation(number)
    arena.enter_state(f"ROUND_{number}_CRITIQUE")
    asked = [_criticize(arena, edge, situation) for edge in edges]
    for each in contributions(await arena.run_phase(critique.CRITIQUE, number, asked)):
        arena.transcript.add_critique(each)


async def run_revision(arena: Discussion, number: int, missing: str = "") -> None:
    """Ask for the critiques that are missing of present texts; each author revises its own once its critiques are in."""
    edges, situation = _draw_edges(arena, number), arena.create_situation(number, missing)
    criticizing = PhaseMarks(arena.debate, number, critique.CRITIQUE, len(edges))
    authors = arena.works()
    refining = PhaseMarks(arena.debate, number, refine.REFINEMENT, len(authors))
    if edges:
        arena.enter_state(f"ROUND_{number}_CRITIQUE")

    async def criticize(edge: Edge) -> Made:
        criticizing.mark_start()
        made = await _criticize(arena, edge, situation)
        criticizing.mark_end()
        return made

    async with asyncio.TaskGroup() as tasks:
        critiques = {edge: tasks.create_task(criticize(edge)) for edge in edges}

        async def revise(work: Contribution) -> Made:
            asked = [each for (_, target), each in critiques.items() if target == work.agent]
            received = [
                *arena.transcript.open_critiques(work.agent),
                *contributions([await each for each in asked]),
            ]
            made = None
            if received or not asked:
                arena.enter_state(f"ROUND_{number}_REVISION")
                refining.mark_start()
                made = await refine.refine(arena.debate, arena.by_id[work.agent], work, received, situation)
            refining.mark_end()
            return made

        refinements = [tasks.create_task(revise(each)) for each in authors]
    for each in contributions([task.result() for task in critiques.values()]):
        arena.transcript.add_critique(each)
    revised = contributions([task.result() for task in refinements])
    arena.transcript.add_revisions(await state_positions(arena.debate, number, revised))


async def _criticize(arena: Discussion, edge: Edge, situation: Situation) -> Made:
    critic, target = edge
    return await critique.criticize(
        arena.debate,
        arena.by_id[critic],
        arena.transcript.work(target),
        situation,
        arena.transcript.last_exchange(edge),
    )


async def run_last_refinement(arena: Discussion) -> None:
    """Let every author write its proposal as it goes to the vote, with the texts of those that it has an edge with."""
    number = arena.last_revision + 1
    drawn = _choose_edges(arena, arena.last_revision)
    async with arena.run_round(number):
        situation = arena.create_situation(number)
        works = arena.works()
        issues = {work.agent: await arena.collect_issues(work.agent) for work in works}
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
        made = await arena.run_phase(refine.FINAL_REFINEMENT, number, asked)
        arena.transcript.add_revisions(await state_positions(arena.debate, number, contributions(made)))
