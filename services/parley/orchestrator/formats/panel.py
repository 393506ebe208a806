"""The panel: rounds of propose, critique and refine, then a judge's synthesis.

Nothing waits that need not: a critique starts with the one proposal it needs, a refinement with its own critiques.
Agents that see the full history start a round together; others go on alone, each with its own line of work.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from parley.orchestrator.contributions import Contribution, quoted
from parley.orchestrator.debate import Debate
from parley.orchestrator.errors import DebateFailedError
from parley.orchestrator.events import RoundFinished, RoundStarted, Solution, StepFailed
from parley.orchestrator.limits import may_pass
from parley.orchestrator.phases.critique import critique
from parley.orchestrator.phases.decide_on_rounds import enough
from parley.orchestrator.phases.progress import PhaseMarks
from parley.orchestrator.phases.propose import propose, propose_key
from parley.orchestrator.phases.recall import recall
from parley.orchestrator.phases.refine import refine
from parley.orchestrator.phases.summarize import summarize_own
from parley.orchestrator.phases.synthesize import synthesize
from parley.orchestrator.phases.vote_on_drafts import vote_on_drafts
from parley.orchestrator.recorded import Wishes
from parley.orchestrator.spec import AgentSpec, quorum

__all__ = ["panel"]

_Step = asyncio.Task[Contribution | StepFailed | None]


async def panel(debate: Debate) -> Solution:
    """Hold the rounds and return the judge's answer."""
    spec = debate.spec
    past = await recall(debate)
    rounds: list[_Round] = []
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, spec.rounds + 1):
            wishes = await debate.control(f"round/{number}/control")
            if wishes.end and rounds:
                break
            debate.note(f"round/{number}/started", RoundStarted(number, spec.rounds))
            rounds.append(_Round(debate, tasks, number, wishes, past, tuple(rounds)))
            if number == 1:
                tasks.create_task(_vote_on_drafts(debate, rounds[0]))
            if number < spec.rounds and await _ended(debate, rounds):
                break
    held = [await each.whole() for each in rounds]
    return await synthesize(debate, _standing(debate, held), await debate.control("synthesis/control"))


def _standing(debate: Debate, held: Sequence[tuple[Contribution, ...]]) -> Sequence[tuple[Contribution, ...]]:
    """Return the rounds that have something: a limit may have ended the last one before it did."""
    if debate.ending and not any(made.activity == "proposal" for each in held for made in each):
        steps = tuple(propose_key(1, agent.id) for agent in debate.spec.agents)
        message = "the debate's limit was reached before any proposal stood"
        raise DebateFailedError(debate.ending.upper(), message, phase="round 1 proposal", steps=steps)
    return [each for each in held if each]


async def _vote_on_drafts(debate: Debate, first: "_Round") -> None:
    await vote_on_drafts(debate, await first.drafts())


async def _ended(debate: Debate, rounds: "Sequence[_Round]") -> bool:
    """Wait until the next round may begin, and return whether there is to be none."""
    spec, present = debate.spec, rounds[-1]
    if spec.termination.rule == "fixed":
        await (present.whole() if spec.include_full_history else present.first_line())
        return False
    await present.whole()
    before = await rounds[-2].works() if len(rounds) > 1 else ()
    return await enough(debate, len(rounds), await present.works(), before)


@dataclass(frozen=True, slots=True)
class _Marks:
    propose: PhaseMarks
    critique: PhaseMarks
    refine: PhaseMarks


class _Round:
    """One round: a task a step, each waiting for the contributions it needs."""

    def __init__(
        self,
        debate: Debate,
        tasks: asyncio.TaskGroup,
        number: int,
        wishes: Wishes,
        past: str,
        before: Sequence["_Round"],
    ) -> None:
        """Start the round after those before it, without the muted. `past` is what is recalled of past debates."""
        self._debate = debate
        self._number = number
        self._wishes = wishes
        self._past = past
        self._before = before
        self._carried: set[str] = set()
        self.agents = tuple(each for each in debate.spec.agents if each.id not in wishes.muted)
        count = len(self.agents)
        self._marks = _Marks(
            PhaseMarks(debate, number, "proposal", count),
            PhaseMarks(debate, number, "critique", count * (count - 1)),
            PhaseMarks(debate, number, "refinement", count),
        )
        self._histories = {each.id: tasks.create_task(self._history(each)) for each in self.agents}
        self._proposals: dict[str, _Step] = {
            each.id: tasks.create_task(self._propose(each)) for each in self.agents
        }
        self._critiques: dict[tuple[str, str], _Step] = {
            (critic.id, target.id): tasks.create_task(self._critique(critic, target))
            for target in self.agents
            for critic in self.agents
            if critic is not target
        }
        self._refinements: dict[str, _Step] = {
            each.id: tasks.create_task(self._refine(each)) for each in self.agents
        }
        self._limit = tasks.create_task(debate.limiter.keep_round(number))
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
        """Return every agent's present work, in the order of the roster."""
        return tuple([made for agent in self.agents if (made := await self.work(agent.id)) is not None])

    async def drafts(self) -> tuple[Contribution, ...]:
        """Return the round's proposals, once all have come or failed. Where too many failed, they are tried again first."""
        await self._quorum
        return tuple(
            [made for step in self._proposals.values() if isinstance(made := await step, Contribution)]
        )

    def _critiques_of(self, agent: str) -> list[_Step]:
        return [step for (_, target), step in self._critiques.items() if target == agent]

    async def _history(self, agent: AgentSpec) -> str:
        own = [each for before in self._before for each in await before.line(agent.id)]
        summary = await summarize_own(self._debate, self._number, agent, own)
        if summary is not None:
            return f"Summary of your part:\n{summary}"
        if self._debate.spec.include_full_history:
            own = [each for before in self._before for each in await before.whole()]
        return quoted(self._debate.spec, own, agent.id)

    async def _propose(self, agent: AgentSpec) -> Contribution | StepFailed:
        history = await self._histories[agent.id]
        if self._debate.spec.carry_forward and self._before:
            work = await self._before[-1].work(agent.id)
            if work is not None:
                self._carried.add(agent.id)
                self._marks.propose.end()
                return Contribution(agent.id, "proposal", self._number, work.text, work.position)
        self._marks.propose.begin()
        made = await propose(self._debate, self._number, agent, self._past, history, self._wishes)
        self._marks.propose.end()
        return made

    async def _critique(self, critic: AgentSpec, target: AgentSpec) -> Contribution | StepFailed | None:
        proposal = await self._proposals[target.id]
        history = await self._histories[critic.id]
        made = None
        if isinstance(proposal, Contribution):
            self._marks.critique.begin()
            made = await critique(self._debate, critic, proposal, history, self._wishes)
        self._marks.critique.end()
        return made

    async def _refine(self, agent: AgentSpec) -> Contribution | StepFailed | None:
        proposal = await self._proposals[agent.id]
        asked = self._critiques_of(agent.id)
        critiques = [made for step in asked if isinstance(made := await step, Contribution)]
        made = None
        if isinstance(proposal, Contribution) and (critiques or not asked):
            self._marks.refine.begin()
            history = await self._histories[agent.id]
            made = await refine(self._debate, agent, proposal, critiques, history, self._wishes)
        self._marks.refine.end()
        return made

    async def _finish(self) -> None:
        await self._quorum
        await asyncio.wait([*self._critiques.values(), *self._refinements.values()])
        self._limit.cancel()
        self._debate.note(f"round/{self._number}/finished", RoundFinished(self._number))

    async def _hold_quorum(self) -> None:
        """End the debate where too few agents have a proposal, naming the first that has none.

        Where those that failed for reasons that pass would be enough, they are waited for. A debate that a limit ends
        goes on with what it has.
        """
        made = {agent.id: await self._proposals[agent.id] for agent in self.agents}
        failed = {agent: each for agent, each in made.items() if isinstance(each, StepFailed)}
        standing, enough_of_them = len(made) - len(failed), quorum(len(made))
        if self._debate.ending or (made and standing >= enough_of_them):
            return
        phase = f"round {self._number} proposal"
        if not failed:
            raise DebateFailedError("QUORUM_LOST", "every agent is muted", phase=phase)
        passing = {agent: each for agent, each in failed.items() if may_pass(each.reason)}
        waits = standing + len(passing) >= enough_of_them
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
        return tuple(propose_key(self._number, agent) for agent in agents)
