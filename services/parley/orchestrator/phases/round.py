"""A round of proposals, critiques and refinements, in which nothing waits that need not.

A critique starts with the one proposal it needs, a refinement with its own critiques. Who criticizes whom is data.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from msgspec import Struct

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.tasks import size_of_prompt
from parley.orchestrator.model.tokens import upper_tokens
from parley.orchestrator.model.topology import Edge
from parley.orchestrator.phases import critique as critiquing
from parley.orchestrator.phases import propose as proposing
from parley.orchestrator.phases import refine as refining
from parley.orchestrator.phases.account import end_for_want_of_agents
from parley.orchestrator.phases.critique import CRITIQUE, criticize
from parley.orchestrator.phases.history import (
    EMPTY_HISTORY,
    AgentHistory,
    LongestTexts,
    available_tokens,
    count_prompt_tokens,
    estimate_material_tokens,
    find_longest,
)
from parley.orchestrator.phases.kept_round import KeptRound, Made, find_kept_round
from parley.orchestrator.phases.past import past_prompt
from parley.orchestrator.phases.patterns import patterns_prompt
from parley.orchestrator.phases.progress import PhaseMarks
from parley.orchestrator.phases.propose import PROPOSAL, check_quorum, propose
from parley.orchestrator.phases.refine import REFINEMENT, refine
from parley.orchestrator.phases.requirements import Requirements
from parley.orchestrator.phases.situation import Situation, history_prompt, round_preamble
from parley.orchestrator.phases.summarize import summarize_own
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.agent_pb2 import Agent, SummarySettings
from parley.v1.event_pb2 import RoundFinished, RoundsEnded, RoundStarted, StepFailed
from parley.v1.memory_pb2 import CritiquePattern, PastDebate

__all__ = ["Edge", "Round", "RoundPlan", "all_to_all"]

_Step = asyncio.Future[Made]

_TASK_TOKENS = 400
"""What a phase adds to the instruction of a role, in tokens."""


def all_to_all(agents: Sequence[Agent]) -> tuple[Edge, ...]:
    """Let every agent criticize every other one."""
    return tuple((critic.id, target.id) for target in agents for critic in agents if critic.id != target.id)


class RoundPlan(Struct, frozen=True):
    """A round to run.

    Attributes:
        number: From 1; `total`: rounds at most.
        agents: Who takes part.
        edges: Who criticizes whom; both take part.
        past: What is recalled of past debates. First drafts wait for it, and not for the requirements.
        patterns: Which issues debates like this one raised with success. First drafts wait for them as well.
        requirements: What an answer has to meet; first drafts do not wait for it either.
        drafts_only: Whether agents only propose; there are no edges then.
        full_history: Whether agents see the whole text of the rounds before, rather than their own line of work.
        carry_forward: Whether work of the round before stands as the proposal of this one.
        summaries: When an agent's own history is summarized.
    """

    number: int
    total: int
    agents: tuple[Agent, ...]
    edges: tuple[Edge, ...]
    steering: Steering
    past: asyncio.Task[Sequence[PastDebate]]
    patterns: asyncio.Task[Sequence[CritiquePattern]]
    requirements: asyncio.Task[Requirements]
    full_history: bool
    carry_forward: bool
    summaries: SummarySettings
    drafts_only: bool = False


class Round:
    """One round: a task a step, each waiting for the contributions it needs.

    Attributes:
        agents: Those who take part in it.
    """

    def __init__(
        self, debate: Debate, tasks: asyncio.TaskGroup, plan: RoundPlan, before: Sequence["Round"]
    ) -> None:
        """Start the round after those before it, or take it from the log if it is kept there."""
        number, agents = plan.number, plan.agents
        self._debate = debate
        self._tasks = tasks
        self._plan = plan
        self._before = before
        self._carried: set[str] = set()
        self._first_situation: Situation | None = None
        self._situations: dict[str, Situation] = {}
        self._made: tuple[Contribution, ...] = ()
        self._longest: LongestTexts | None = None
        self._proposing = PhaseMarks(debate, number, PROPOSAL, len(agents))
        self._criticizing = PhaseMarks(debate, number, CRITIQUE, len(plan.edges))
        self._refining = PhaseMarks(debate, number, REFINEMENT, len(agents))
        self.agents = agents
        self._agent_histories: dict[str, asyncio.Task[AgentHistory]] = {}
        self._proposals: dict[str, _Step] = {}
        self._critiques: dict[Edge, _Step] = {}
        self._refinements: dict[str, _Step] = {}
        self._received: dict[str, list[_Step]] = {}
        self._limit: asyncio.Task[None] | None = None
        self.kept = self._find_kept()
        if self.kept is None:
            self._start_steps()
        else:
            self._keep_steps(self.kept)
        for (_, target), step in self._critiques.items():
            self._received.setdefault(target, []).append(step)
        self._quorum = tasks.create_task(self._check_quorum())
        self._complete = tasks.create_task(self._finish())

    def _start_steps(self) -> None:
        plan, start = self._plan, self._tasks.create_task
        opening = RoundStarted(number=plan.number, total=plan.total)
        self._debate.record_event(f"round/{plan.number}/started", opening)
        by_id = {each.id: each for each in plan.agents}
        for each in plan.agents:
            _ = self._start_history(each)
        self._proposals = {each.id: start(self._propose(each)) for each in plan.agents}
        self._critiques = {
            (critic, target): start(self._criticize(by_id[critic], target)) for critic, target in plan.edges
        }
        if not plan.drafts_only:
            self._refinements = {each.id: start(self._refine(each)) for each in plan.agents}
        self._limit = start(self._debate.limiter.enforce_round_limit(plan.number))

    def _find_kept(self) -> KeptRound | None:
        """Return the round by the log, if it and all before it are kept there."""
        plan, before = self._plan, self._before[-1].kept if self._before else None
        if plan.drafts_only or (self._before and before is None):
            return None
        works = before.works if before else {}
        carried = {
            each.id: self._carry(works[each.id])
            for each in plan.agents
            if self._is_carried(works.get(each.id))
        }
        kept = find_kept_round(
            self._debate, plan.number, [each.id for each in plan.agents], plan.edges, carried, works
        )
        if kept is not None:
            self._carried.update(carried)
        return kept

    def _keep_steps(self, kept: KeptRound) -> None:
        self._proposals = {each: _create_ended_step(made) for each, made in kept.proposals.items()}
        self._critiques = {each: _create_ended_step(made) for each, made in kept.critiques.items()}
        self._refinements = {each: _create_ended_step(made) for each, made in kept.refinements.items()}

    async def collect_all(self) -> tuple[Contribution, ...]:
        """Return all contributions of the round, once it is complete."""
        await self._complete
        return self._made

    async def wait_for_first_line(self) -> None:
        """Wait until the first agent is through the round."""
        await asyncio.wait(self._refinements.values(), return_when=asyncio.FIRST_COMPLETED)

    async def collect_line(self, agent: str) -> tuple[Contribution, ...]:
        """Return an agent's own line of work: its proposal, the critiques it received, its refinement."""
        if agent not in self._refinements:
            return ()
        await self._refinements[agent]
        proposal = () if agent in self._carried else (self._proposals[agent],)
        steps = (*proposal, *self._critiques_of(agent), self._refinements[agent])
        return tuple([made for step in steps if isinstance(made := await step, Contribution)])

    async def get_exchange(self, critic: str, target: str) -> Sequence[Contribution]:
        """Return an agent's critique of another's proposal and the refinement that answers it, as far as there are any."""
        steps = (self._critiques.get((critic, target)), self._refinements.get(target))
        return [made for step in steps if step is not None and isinstance(made := await step, Contribution)]

    async def get_work(self, agent: str) -> Contribution | None:
        """Return an agent's present work: its refinement, or its proposal if that was not refined."""
        for steps in (self._refinements, self._proposals):
            made = await steps[agent] if agent in steps else None
            if isinstance(made, Contribution):
                return made
        return None

    async def get_history(self, agent: str) -> AgentHistory:
        """Return what an agent read of the rounds before this one; nothing if it did not take part."""
        told = next((each for each in self.agents if each.id == agent), None)
        return EMPTY_HISTORY if told is None else await self._start_history(told)

    def _start_history(self, agent: Agent) -> asyncio.Task[AgentHistory]:
        """Start to build what an agent reads, unless that was done; for a round that is kept, a later one may need it."""
        if agent.id not in self._agent_histories:
            self._agent_histories[agent.id] = self._tasks.create_task(self._build_history(agent))
        return self._agent_histories[agent.id]

    async def collect_works(self) -> tuple[Contribution, ...]:
        """Return every agent's present work, in the order of the plan."""
        agents = self._plan.agents
        return tuple([made for agent in agents if (made := await self.get_work(agent.id)) is not None])

    async def list_failed(self) -> tuple[StepFailed, ...]:
        """Return the steps of the round that have failed, once it is complete."""
        await self._complete
        steps = [*self._proposals.values(), *self._critiques.values(), *self._refinements.values()]
        return tuple(made for step in steps if isinstance(made := step.result(), StepFailed))

    async def collect_drafts(self) -> tuple[Contribution, ...]:
        """Return the round's proposals, once all have come or failed. If too many failed, they are tried again first."""
        await self._quorum
        return tuple(
            [made for step in self._proposals.values() if isinstance(made := await step, Contribution)]
        )

    def _critiques_of(self, agent: str) -> list[_Step]:
        return self._received.get(agent, [])

    async def _build_history(self, agent: Agent) -> AgentHistory:
        """Return what an agent reads of the rounds before: what fits its context, and a summary of the rest."""
        if not self._before:
            return EMPTY_HISTORY
        plan, debate = self._plan, self._debate
        last = await self._before[-1].get_history(agent.id)
        contributions = await self._collect_before(agent.id, last)
        longest = [await each.find_longest(agent.id) for each in self._before]
        critics = sum(target == agent.id for _, target in plan.edges)
        situation = await self._create_situation()
        begins = (*round_preamble(debate, agent, situation), *situation.patterns)

        def count_other_tokens() -> int:
            start = count_prompt_tokens(begins, agent.context_tokens)
            return start + _instruction_tokens(debate, agent) + estimate_material_tokens(longest, critics)

        other_tokens = await in_thread_if_large(size_of_prompt(begins), count_other_tokens)
        room = available_tokens(agent.context_tokens, debate.spec.max_output_tokens, other_tokens)
        return await summarize_own(debate, plan.number, agent, contributions, last, room, plan.summaries)

    async def _collect_before(self, agent: str, last: AgentHistory) -> tuple[Contribution, ...]:
        """Return what an agent may read of the rounds before, but for what it left out in the last one: `last` is what it read there."""
        if self._before[-1].is_told(agent):
            return (*last.contributions, *await self._before[-1].collect_for(agent))
        return tuple([made for before in self._before for made in await before.collect_for(agent)])

    def is_told(self, agent: str) -> bool:
        """Return whether an agent takes part, and so reads what the rounds before have made."""
        return any(each.id == agent for each in self.agents)

    async def collect_for(self, agent: str) -> tuple[Contribution, ...]:
        """Return what an agent may read of this round in later ones."""
        return await (self.collect_all() if self._plan.full_history else self.collect_line(agent))

    async def find_longest(self, agent: str) -> LongestTexts:
        """Return how long the longest of these contributions are."""
        if not self._plan.full_history:
            return find_longest(await self.collect_line(agent))
        await self._complete
        if self._longest is None:
            size = sum(len(each.text) for each in self._made)
            self._longest = await in_thread_if_large(size, partial(find_longest, self._made))
        return self._longest

    async def _create_situation(self, agent: Agent | None = None) -> Situation:
        """Return where an agent stands; for no agent, without a history."""
        plan, name = self._plan, agent.id if agent else ""
        if name not in self._situations:
            first, requirements = await self._create_first_situation(), await plan.requirements
            history = await self.get_history(agent.id) if agent else EMPTY_HISTORY
            if name not in self._situations:  # others may have waited for the same
                whose = "The debate" if plan.full_history else "Your part of the debate"
                read = history_prompt(self._debate, agent, history, whose) if agent else ()
                told = requirements.to_prompt_text()
                self._situations[name] = replace(first, history=read, requirements=told)
        return self._situations[name]

    async def _create_first_situation(self) -> Situation:
        """Return where an agent stands that writes its first draft, before there are requirements: the same for all agents."""
        plan = self._plan
        past, patterns = await plan.past, await plan.patterns
        if self._first_situation is None:
            self._first_situation = Situation(
                plan.number,
                plan.total,
                past=past_prompt(past),
                patterns=patterns_prompt(patterns),
                guidance=plan.steering.guidance,
            )
        return self._first_situation

    async def _propose(self, agent: Agent) -> Contribution | StepFailed:
        before = await self._find_last_work(agent.id)
        if before is not None and self._is_carried(before):
            self._carried.add(agent.id)
            self._proposing.mark_end()
            return self._carry(before)
        situation = await (self._create_situation(agent) if self._before else self._create_first_situation())
        self._proposing.mark_start()
        history = await self.get_history(agent.id)
        is_in_history = before is not None and any(
            each.name == before.name for each in reversed(history.contributions)
        )
        made = await propose(self._debate, agent, before, situation, is_in_history=is_in_history)
        self._proposing.mark_end()
        return made

    def _is_carried(self, work: Contribution | None) -> bool:
        """Return whether an agent's last work stands as its proposal."""
        return self._plan.carry_forward and work is not None and work.round == self._plan.number - 1

    def _carry(self, work: Contribution) -> Contribution:
        return Contribution(work.agent, PROPOSAL.name, self._plan.number, work.text, work.position)

    async def _find_last_work(self, agent: str) -> Contribution | None:
        """Return an agent's work of the last round in which it has some."""
        for before in reversed(self._before):
            work = await before.get_work(agent)
            if work is not None:
                return work
        return None

    async def _criticize(self, critic: Agent, target: str) -> Contribution | StepFailed | None:
        proposal = await self._proposals[target]
        made = None
        if isinstance(proposal, Contribution):
            situation = await self._create_situation(critic)
            self._criticizing.mark_start()
            answered: Sequence[Contribution] = ()
            if self._before and not self._plan.full_history:
                answered = await self._before[-1].get_exchange(critic.id, target)
            made = await criticize(self._debate, critic, proposal, situation, answered)
        self._criticizing.mark_end()
        return made

    async def _refine(self, agent: Agent) -> Contribution | StepFailed | None:
        proposal = await self._proposals[agent.id]
        asked = self._critiques_of(agent.id)
        critiques = [made for step in asked if isinstance(made := await step, Contribution)]
        made = None
        if isinstance(proposal, Contribution) and (critiques or not asked):
            situation = await self._create_situation(agent)
            self._refining.mark_start()
            made = await refine(self._debate, agent, proposal, critiques, situation)
        self._refining.mark_end()
        return made

    async def _finish(self) -> None:
        await self._quorum
        if self._limit is not None:  # else the round is kept
            await self._wait_for_steps()
            self._limit.cancel()
        proposals = [each for agent, each in self._proposals.items() if agent not in self._carried]
        steps = [*proposals, *self._critiques.values(), *self._refinements.values()]
        self._made = tuple(made for step in steps if isinstance(made := step.result(), Contribution))

    async def _wait_for_steps(self) -> None:
        # there are none of drafts alone, nor if a limit ended a debate in which every agent is muted
        if self._refinements:
            await asyncio.wait([*self._critiques.values(), *self._refinements.values()])
        self._situations.clear()  # no step is left that is told of them
        number = self._plan.number
        self._debate.record_event(f"round/{number}/finished", RoundFinished(number=number))

    async def find_end(self) -> RoundsEnded | None:
        """Return that the rounds end with this one, since too few agents could be asked in it, once it is complete; else None."""
        await self._complete
        lost = await self._quorum
        return None if lost is None else end_for_want_of_agents(self._plan.number, lost)

    async def _check_quorum(self) -> DebateFailedError | None:
        made = {agent.id: await self._proposals[agent.id] for agent in self._plan.agents}
        return check_quorum(self._debate, self._plan.number, made)


def _instruction_tokens(debate: Debate, agent: Agent) -> int:
    """Return the tokens of the longest instruction that an agent gets in a round."""
    sections = (proposing.SECTION, critiquing.SECTION, refining.SECTION)
    return max(upper_tokens(debate.instructions(agent)[each]) for each in sections) + _TASK_TOKENS


def _create_ended_step(made: Made) -> _Step:
    step: _Step = asyncio.get_running_loop().create_future()
    step.set_result(made)
    return step
