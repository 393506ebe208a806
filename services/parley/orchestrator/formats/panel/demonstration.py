"""A panel that a very small model holds: the same phases, in prose alone, with an answer made of the panel's own sentences."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.sentences import first_sentence
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.phases.account import all_rounds_held, ended_from_outside
from parley.orchestrator.phases.critique import CRITIQUE
from parley.orchestrator.phases.failing import failed_for_want_of
from parley.orchestrator.phases.plain import criticize_plainly, propose_plainly, recommend, refine_plainly
from parley.orchestrator.phases.progress import PhaseMarks
from parley.orchestrator.phases.propose import PROPOSAL, propose_key
from parley.orchestrator.phases.quorum import no_proposal_in_time
from parley.orchestrator.phases.refine import REFINEMENT
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import RoundFinished, RoundStarted, StepFailed, Warned
from parley.v1.panel_pb2 import (
    SYNTHESIS_METHOD_JUDGE,
    TERMINATION_RULE_FIXED,
    PanelOutcome,
    PanelSettings,
)

__all__ = ["demonstrate"]


async def demonstrate(debate: Debate) -> Outcome:
    """Hold the rounds and return the judge's recommendation, with what the panel said for and against."""
    settings = debate.spec.settings
    assert isinstance(settings, PanelSettings)
    _tell_what_is_left_out(debate, settings)
    works: dict[str, Contribution] = {}
    critiques: list[Contribution] = []
    ended, rounds = all_rounds_held(settings.rounds), settings.rounds
    for number in range(1, settings.rounds + 1):
        steering = await debate.read_steering(f"round/{number}/control")
        if steering.end and number > 1:
            ended, rounds = ended_from_outside(steering, number - 1), number - 1
            break
        debate.record_event(f"round/{number}/started", RoundStarted(number=number, total=settings.rounds))
        held = await _Round(debate, number, steering, works).hold()
        critiques = [each for each in held if each.activity == CRITIQUE.name] or critiques
        works |= {each.agent: each for each in held if each.activity != CRITIQUE.name}
        debate.record_event(f"round/{number}/finished", RoundFinished(number=number))
    final = [works[agent.id] for agent in debate.participants if agent.id in works]
    if not final:
        raise _nothing_stands(debate)
    steering = await debate.read_steering("synthesis/control")
    if steering.limit and rounds == settings.rounds:
        ended = ended_from_outside(steering, rounds)
    debate.record_event(f"rounds/ended/{rounds}", ended)
    answer = await recommend(debate, final, steering.guidance)
    panel = PanelOutcome(
        recommendations=_own_sentences(final, answer),
        tradeoffs=_own_sentences(critiques, answer),
        synthesized_by=debate.spec.judge.id,
    )
    return Outcome(description=answer, panel=panel)


class _Round:
    """One round, phase by phase: there is one model, and nothing to gain from beginning early."""

    def __init__(
        self, debate: Debate, number: int, steering: Steering, before: dict[str, Contribution]
    ) -> None:
        self._debate = debate
        self._number = number
        self._guidance = steering.guidance
        self._before = before
        self._agents = [each for each in debate.participants if each.id not in steering.muted]

    async def hold(self) -> list[Contribution]:
        """Return all that was contributed, refinements last. Raises DebateFailedError where nobody has a proposal."""
        limit = asyncio.create_task(self._debate.limiter.enforce_round_limit(self._number))
        try:
            proposals = await self._proposals()
            critiques = await self._critiques(proposals)
            return [*proposals, *critiques, *await self._refinements(proposals, critiques)]
        finally:
            limit.cancel()
            await asyncio.wait([limit])

    async def _proposals(self) -> list[Contribution]:
        made = await self._phase(PROPOSAL, [self._propose(each) for each in self._agents])
        failed = {
            propose_key(self._number, agent.id): each
            for agent, each in zip(self._agents, made, strict=True)
            if isinstance(each, StepFailed)
        }
        if made and len(failed) == len(made) and not self._before and not self._debate.ending:
            raise failed_for_want_of(failed, f"round {self._number} {PROPOSAL.name}")
        return _contributions(made)

    async def _critiques(self, proposals: Sequence[Contribution]) -> list[Contribution]:
        pairs = [(critic, each) for each in proposals for critic in self._agents if critic.id != each.agent]
        asked = [criticize_plainly(self._debate, critic, each, self._guidance) for critic, each in pairs]
        return _contributions(await self._phase(CRITIQUE, asked))

    async def _refinements(
        self, proposals: Sequence[Contribution], critiques: Sequence[Contribution]
    ) -> list[Contribution]:
        by_id = {agent.id: agent for agent in self._agents}
        asked = []
        for each in proposals:
            told = [critique for critique in critiques if critique.target == each.agent]
            asked.append(refine_plainly(self._debate, by_id[each.agent], each, told, self._guidance))
        return _contributions(await self._phase(REFINEMENT, asked))

    def _propose(self, agent: AgentSpec) -> Awaitable[Contribution | StepFailed]:
        earlier = self._before[agent.id].text if agent.id in self._before else ""
        return propose_plainly(self._debate, self._number, agent, earlier, self._guidance)

    async def _phase(
        self, activity: Activity, asked: Sequence[Awaitable[Contribution | StepFailed]]
    ) -> list[Contribution | StepFailed]:
        marks = PhaseMarks(self._debate, self._number, activity, len(asked))

        async def marked(each: Awaitable[Contribution | StepFailed]) -> Contribution | StepFailed:
            marks.begin()
            made = await each
            marks.end()
            return made

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(marked(each)) for each in asked]
        return [each.result() for each in running]


def _contributions(made: Iterable[Contribution | StepFailed]) -> list[Contribution]:
    return [each for each in made if isinstance(each, Contribution)]


def _own_sentences(said: Iterable[Contribution], answer: str) -> list[str]:
    """Return a sentence of each agent, the first that neither the answer nor another agent's says already."""
    found: dict[str, str] = {}
    for each in said:
        sentence = first_sentence(each.text)
        if each.agent not in found and sentence not in answer and sentence not in found.values():
            found[each.agent] = sentence
    return [f"{agent}: {sentence}" for agent, sentence in found.items()]


def _tell_what_is_left_out(debate: Debate, settings: PanelSettings) -> None:
    """Say which settings ask for more than such a model can do."""
    asked = {
        "it cannot vote or merge: the judge answers": settings.synthesis_method != SYNTHESIS_METHOD_JUDGE,
        "all rounds are held": settings.termination.rule != TERMINATION_RULE_FIXED,
        "it asks nothing before it begins": debate.spec.clarifications is not None,
    }
    left_out = "; ".join(what for what, wanted in asked.items() if wanted)
    if left_out:
        debate.record_event(
            "demonstration/warning", Warned(message=f"a very small model answers: {left_out}")
        )


def _nothing_stands(debate: Debate) -> DebateFailedError:
    if debate.ending:
        return no_proposal_in_time(debate, (agent.id for agent in debate.participants))
    return DebateFailedError("QUORUM_LOST", "every agent is muted", phase=f"round 1 {PROPOSAL.name}")
