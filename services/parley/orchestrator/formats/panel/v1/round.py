"""A round of proposals, critiques and refinements, in which nothing waits that need not.

A critique starts with the one proposal it needs, a refinement with its own critiques. Who criticizes whom is data.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from parley.orchestrator.engine.budget import is_transient
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.panel.v1.critique import CRITIQUE, critique
from parley.orchestrator.formats.panel.v1.propose import PROPOSAL, propose, propose_key
from parley.orchestrator.formats.panel.v1.quoting import quoted
from parley.orchestrator.formats.panel.v1.refine import REFINEMENT, refine
from parley.orchestrator.formats.panel.v1.summarize import summarize_own
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.spec import AgentSpec, SummarySettings
from parley.orchestrator.model.voting import quorum
from parley.orchestrator.phases.progress import PhaseMarks
from parley.v1.event_pb2 import RoundFinished, RoundStarted, StepFailed

__all__ = ["Edge", "Round", "RoundPlan", "all_to_all"]

_Step = asyncio.Task[Contribution | StepFailed | None]

Edge = tuple[str, str]
"""Who criticizes, and whose proposal."""


def all_to_all(agents: Sequence[AgentSpec]) -> tuple[Edge, ...]:
    """Let everybody criticize everybody else."""
    return tuple((critic.id, target.id) for target in agents for critic in agents if critic.id != target.id)


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """A round to be held.

    Attributes:
        number: From 1; `total`: rounds at most.
        agents: Who takes part.
        edges: Who criticizes whom; both take part.
        past: What is recalled of past debates, as text.
        full_history: Whether agents see the whole text of the rounds before, rather than their own line of work.
        carry_forward: Whether work of the round before stands as the proposal of this one.
        summaries: When an agent's own history is summarized.
    """

    number: int
    total: int
    agents: tuple[AgentSpec, ...]
    edges: tuple[Edge, ...]
    steering: Steering
    past: str
    full_history: bool
    carry_forward: bool
    summaries: SummarySettings


class Round:
    """One round: a task a step, each waiting for the contributions it needs."""

    def __init__(
        self, debate: Debate, tasks: asyncio.TaskGroup, plan: RoundPlan, before: Sequence["Round"]
    ) -> None:
        """Start the round after those before it."""
        number, agents = plan.number, plan.agents
        debate.record_event(f"round/{number}/started", RoundStarted(number=number, total=plan.total))
        self._debate = debate
        self._plan = plan
        self._before = before
        self._carried: set[str] = set()
        by_id = {each.id: each for each in agents}
        self._proposing = PhaseMarks(debate, number, PROPOSAL, len(agents))
        self._criticizing = PhaseMarks(debate, number, CRITIQUE, len(plan.edges))
        self._refining = PhaseMarks(debate, number, REFINEMENT, len(agents))
        self._histories = {each.id: tasks.create_task(self._history(each)) for each in agents}
        self._proposals: dict[str, _Step] = {
            each.id: tasks.create_task(self._propose(each)) for each in agents
        }
        self._critiques: dict[Edge, _Step] = {
            (critic, target): tasks.create_task(self._critique(by_id[critic], target))
            for critic, target in plan.edges
        }
        self._refinements: dict[str, _Step] = {
            each.id: tasks.create_task(self._refine(each)) for each in agents
        }
        self._limit = tasks.create_task(debate.limiter.enforce_round_limit(number))
        self._quorum = tasks.create_task(self._hold_quorum())
        self._complete = tasks.create_task(self._finish())

    async def whole(self) -> tuple[Contribution, ...]:
        """Return all contributions of the round, once it is complete."""
        await self._complete
        proposals = [each for agent, each in self._proposals.items() if agent not in self._carried]
        steps = [*proposals, *self._critiques.values(), *self._refinements.values()]
        return tuple(made for step in steps if isinstance(made := step.result(), Contribution))

    async def first_line(self) -> None:
        """Wait until the first agent is through the round."""
        await asyncio.wait(self._refinements.values(), return_when=asyncio.FIRST_COMPLETED)

    async def line(self, agent: str) -> tuple[Contribution, ...]:
        """Return an agent's own line of work: its proposal, the critiques it received, its refinement."""
        if agent not in self._refinements:
            return ()
        await self._refinements[agent]
        proposal = () if agent in self._carried else (self._proposals[agent],)
        steps = (*proposal, *self._critiques_of(agent), self._refinements[agent])
        return tuple([made for step in steps if isinstance(made := await step, Contribution)])

    async def work(self, agent: str) -> Contribution | None:
        """Return an agent's present work: its refinement, or its proposal where that was not refined."""
        for steps in (self._refinements, self._proposals):
            made = await steps[agent] if agent in steps else None
            if isinstance(made, Contribution):
                return made
        return None

    async def works(self) -> tuple[Contribution, ...]:
        """Return every agent's present work, in the order of the plan."""
        agents = self._plan.agents
        return tuple([made for agent in agents if (made := await self.work(agent.id)) is not None])

    async def drafts(self) -> tuple[Contribution, ...]:
        """Return the round's proposals, once all have come or failed. Where too many failed, they are tried again first."""
        await self._quorum
        return tuple(
            [made for step in self._proposals.values() if isinstance(made := await step, Contribution)]
        )

    def _critiques_of(self, agent: str) -> list[_Step]:
        return [step for (_, target), step in self._critiques.items() if target == agent]

    async def _history(self, agent: AgentSpec) -> str:
        plan = self._plan
        own = [each for before in self._before for each in await before.line(agent.id)]
        summary = await summarize_own(self._debate, plan.number, agent, own, plan.summaries)
        if summary is not None:
            return f"Summary of your part:\n{summary}"
        if plan.full_history:
            own = [each for before in self._before for each in await before.whole()]
        return quoted(self._debate.letter, own, agent.id)

    async def _propose(self, agent: AgentSpec) -> Contribution | StepFailed:
        plan, history = self._plan, await self._histories[agent.id]
        if plan.carry_forward and self._before:
            work = await self._before[-1].work(agent.id)
            if work is not None:
                self._carried.add(agent.id)
                self._proposing.end()
                return Contribution(agent.id, PROPOSAL.name, plan.number, work.text, work.position)
        self._proposing.begin()
        made = await propose(self._debate, plan.number, agent, plan.past, history, plan.steering)
        self._proposing.end()
        return made

    async def _critique(self, critic: AgentSpec, target: str) -> Contribution | StepFailed | None:
        proposal = await self._proposals[target]
        history = await self._histories[critic.id]
        made = None
        if isinstance(proposal, Contribution):
            self._criticizing.begin()
            made = await critique(self._debate, critic, proposal, history, self._plan.steering)
        self._criticizing.end()
        return made

    async def _refine(self, agent: AgentSpec) -> Contribution | StepFailed | None:
        proposal = await self._proposals[agent.id]
        asked = self._critiques_of(agent.id)
        critiques = [made for step in asked if isinstance(made := await step, Contribution)]
        made = None
        if isinstance(proposal, Contribution) and (critiques or not asked):
            self._refining.begin()
            history = await self._histories[agent.id]
            made = await refine(self._debate, agent, proposal, critiques, history, self._plan.steering)
        self._refining.end()
        return made

    async def _finish(self) -> None:
        await self._quorum
        if self._refinements:  # a limit may have ended a debate in which everybody is muted
            await asyncio.wait([*self._critiques.values(), *self._refinements.values()])
        self._limit.cancel()
        number = self._plan.number
        self._debate.record_event(f"round/{number}/finished", RoundFinished(number=number))

    async def _hold_quorum(self) -> None:
        """End the debate where too few agents have a proposal, naming the first that has none.

        Where those that failed for reasons that pass would be enough, they are waited for. A debate that a limit ends
        goes on with what it has.
        """
        made = {agent.id: await self._proposals[agent.id] for agent in self._plan.agents}
        failed = {agent: each for agent, each in made.items() if isinstance(each, StepFailed)}
        standing, enough = len(made) - len(failed), quorum(len(made))
        if self._debate.ending or (made and standing >= enough):
            return
        phase = f"round {self._plan.number} {PROPOSAL.name}"
        if not failed:
            raise DebateFailedError("QUORUM_LOST", "every agent is muted", phase=phase)
        passing = {agent: each for agent, each in failed.items() if is_transient(each.reason)}
        waits = standing + len(passing) >= enough
        lasting = {agent: each for agent, each in failed.items() if agent not in passing}
        agent, first = next(iter((passing if waits else lasting).items()))
        raise DebateFailedError(
            first.reason,
            first.message,
            agent=agent,
            phase=phase,
            steps=self._keys(failed),
            awaited=self._keys(passing) if waits else (),
        )

    def _keys(self, agents: Iterable[str]) -> tuple[str, ...]:
        return tuple(propose_key(self._plan.number, agent) for agent in agents)
