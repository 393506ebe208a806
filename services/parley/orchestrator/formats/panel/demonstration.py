"""A panel of a very small model: the panel's phases in prose alone, with one text as the answer.

Such a model follows one short instruction, fails at several, and copies what looks like a pattern. So it is asked for
prose, in a few words without names or letters. Each answer is begun for it, and only its whole sentences count. Its answer
has no lists: one of trade-offs or recommendations would be longer than what it knows.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.best_work import choose_best_work
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.sentences import first_sentence, to_prose
from parley.orchestrator.model.tasks import Activity, Prompt, Task, system_part, user_part
from parley.orchestrator.phases import critique, propose, refine
from parley.orchestrator.phases.account import end_from_outside, end_of_all_rounds, end_of_drafts
from parley.orchestrator.phases.critique import CRITIQUE
from parley.orchestrator.phases.failing import answer_failure, debate_failure
from parley.orchestrator.phases.progress import PhaseMarks
from parley.orchestrator.phases.prompting import CONTEXT_PRIORITY, MATERIAL_PRIORITY, environment_of
from parley.orchestrator.phases.propose import PROPOSAL, no_proposal_failure, propose_key
from parley.orchestrator.phases.refine import REFINEMENT
from parley.orchestrator.phases.stand_in import create_stand_in
from parley.orchestrator.phases.synthesize import KEY, SYNTHESIS
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import AnswerDetails, Outcome, Reply, StandIn, Work
from parley.v1.event_pb2 import RoundFinished, RoundStarted, StepFailed
from parley.v1.gateway_pb2 import PromptPart
from parley.v1.panel_pb2 import (
    EFFORT_QUICK,
    SYNTHESIS_METHOD_JUDGE,
    TERMINATION_RULE_FIXED,
    PanelOutcome,
    PanelSettings,
)

_TOKENS: Final = 64
"""Of a contribution if the debate names no bound: three sentences or so, some seconds of such a model."""
_MIN_ANSWER_CHARACTERS: Final = 80
_VALUES: Final[Mapping[str, str]] = {
    "architect": "a clear structure",
    "performance": "speed",
    "security": "safety",
    "testing": "good tests",
    "simplicity": "simplicity",
    "data-modeling": "well-kept data",
}
"""What an agent of a role cares for, as far as such a model understands it."""


async def _propose_plainly(
    debate: Debate, number: int, agent: Agent, earlier: str, guidance: Sequence[str]
) -> Contribution | StepFailed:
    """Ask an agent for its proposal. `earlier` is what it said in the round before; empty in the first."""
    earlier_work = [_create_material("You said before", [earlier])] if earlier else []
    prompt = (*_create_preamble(debate, agent, guidance), *earlier_work)
    work = propose.PROPOSAL.create_work(agent.id, number)
    task = _create_task(debate, work, prompt, "I propose to", concurrency=propose.CONCURRENCY)
    return _to_contribution(await debate.ask(propose.propose_key(number, agent.id), agent, task), work)


async def _criticize_plainly(
    debate: Debate, critic: Agent, proposal: Contribution, guidance: Sequence[str]
) -> Contribution | StepFailed:
    """Ask an agent what speaks against a proposal."""
    prompt = (
        *_create_preamble(debate, critic, guidance),
        _create_material("A colleague says", [proposal.text]),
        user_part("What speaks against it?"),
    )
    work = critique.CRITIQUE.create_work(critic.id, proposal.round, proposal.agent)
    key = f"round/{proposal.round}/critique/{critic.id}/of/{proposal.agent}"
    task = _create_task(
        debate, work, prompt, "The problem with this is that", concurrency=critique.CONCURRENCY
    )
    return _to_contribution(await debate.ask(key, critic, task), work)


async def _refine_plainly(
    debate: Debate,
    agent: Agent,
    proposal: Contribution,
    critiques: Sequence[Contribution],
    guidance: Sequence[str],
) -> Contribution | StepFailed:
    """Ask an agent for its revised proposal."""
    prompt = (
        *_create_preamble(debate, agent, guidance),
        _create_material("You said", [proposal.text]),
        *([_create_material("Colleagues say", [each.text for each in critiques])] if critiques else []),
        user_part("What do you propose now?"),
    )
    work = refine.REFINEMENT.create_work(agent.id, proposal.round)
    key = f"round/{proposal.round}/refine/{agent.id}"
    task = _create_task(debate, work, prompt, "I now propose to", concurrency=refine.CONCURRENCY)
    return _to_contribution(await debate.ask(key, agent, task), work)


async def _recommend(debate: Debate, works: Sequence[Contribution], guidance: Sequence[str]) -> str:
    """Return the judge's answer: whole sentences, and if they are few, the panel's first one after them.

    Raise DebateFailedError if the judge gave none.
    """
    judge = debate.judge
    prompt = (
        *_create_preamble(debate, judge, guidance, who="You give advice in plain sentences."),
        _create_material("Experts say", [each.text for each in works]),
        user_part("What do you recommend, and why?"),
    )
    task = _create_task(debate, SYNTHESIS.create_work(judge.id), prompt, "I recommend to", is_answer=True)
    reply = await debate.ask(KEY, judge, task)
    if isinstance(reply, StepFailed):
        raise answer_failure(debate, {KEY: reply}, SYNTHESIS.name)
    answer = to_prose(reply.text)
    if len(answer) >= _MIN_ANSWER_CHARACTERS or not works:
        return answer
    return f"{answer} {first_sentence(works[0].text)}"


def _create_preamble(debate: Debate, agent: Agent, guidance: Sequence[str], who: str = "") -> Prompt:
    """Return what every prompt begins with: who the agent is, the question, the documents, what the person said."""
    value = _VALUES.get(agent.role, "good work")
    own = agent.system_prompt.text
    usual = f"You are a software engineer who values {value}. You answer in two short sentences."
    parts = [system_part(own or who or usual), user_part(f"Question: {debate.spec.question}")]
    parts += [*environment_of(debate.spec), *debate.documents.parts(CONTEXT_PRIORITY)]
    parts += [user_part(f"Mind this: {each}") for each in guidance]
    return tuple(parts)


def _create_material(title: str, texts: Sequence[str]) -> PromptPart:
    """Return what others said: one text behind its title, several below it."""
    said = texts[0] if len(texts) == 1 else "\n" + "\n".join(f"- {each}" for each in texts)
    return user_part(f"{title}: {said}", MATERIAL_PRIORITY)


def _create_task(
    debate: Debate,
    work: Work,
    prompt: Prompt,
    answer_start: str,
    *,
    concurrency: str = "",
    is_answer: bool = False,
) -> Task:
    return Task(
        work,
        prompt,
        debate.spec.max_output_tokens or _TOKENS,
        is_answer=is_answer,
        concurrency=concurrency,
        answer_start=answer_start,
    )


def _to_contribution(reply: Reply | StepFailed, work: Work) -> Contribution | StepFailed:
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(
        work.agent_id, work.activity, work.round, to_prose(reply.text), target=work.target_agent_id
    )


async def run_demonstration(debate: Debate) -> Outcome:
    """Run the rounds and return the judge's recommendation."""
    settings = debate.settings
    assert isinstance(settings, PanelSettings)
    _warn_of_ignored_settings(debate, settings)
    works: dict[str, Contribution] = {}
    is_quick, rounds = settings.effort == EFFORT_QUICK, settings.rounds
    ended = end_of_drafts() if is_quick else end_of_all_rounds(rounds)
    for number in range(1, settings.rounds + 1):
        steering = await debate.read_steering(f"round/{number}/control")
        if steering.end and number > 1:
            ended, rounds = end_from_outside(steering, number - 1), number - 1
            break
        debate.record_event(f"round/{number}/started", RoundStarted(number=number, total=settings.rounds))
        made = await _Round(debate, number, steering, works).run(drafts_only=is_quick)
        works |= {each.agent: each for each in made if each.activity != CRITIQUE.name}
        debate.record_event(f"round/{number}/finished", RoundFinished(number=number))
    final = [works[agent.id] for agent in debate.participants if agent.id in works]
    if not final:
        raise _no_proposal_failure(debate)
    steering = await debate.read_steering("synthesis/control")
    if steering.limit and rounds == settings.rounds:
        ended = end_from_outside(steering, rounds)
    debate.record_event(f"rounds/ended/{rounds}", ended)
    stand_in: StandIn | None = None
    try:
        answer = await _recommend(debate, final, steering.guidance)
    except DebateFailedError as failed:
        best = choose_best_work(final, ())
        answer, stand_in = best.work.text, create_stand_in(debate, KEY, best, failed, debate.judge.id)
    panel = PanelOutcome(synthesized_by=stand_in.agent_id if stand_in else debate.judge.id)
    return Outcome(description=answer, details=AnswerDetails(), stand_in=stand_in, panel=panel)


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

    async def run(self, *, drafts_only: bool) -> list[Contribution]:
        """Return all that was contributed, refinements last. Raises DebateFailedError if no agent has a proposal."""
        limit = asyncio.create_task(self._debate.limiter.enforce_round_limit(self._number))
        try:
            proposals = await self._collect_proposals()
            if drafts_only:
                return proposals
            critiques = await self._collect_critiques(proposals)
            return [*proposals, *critiques, *await self._collect_refinements(proposals, critiques)]
        finally:
            limit.cancel()
            await asyncio.wait([limit])

    async def _collect_proposals(self) -> list[Contribution]:
        made = await self._run_phase(PROPOSAL, [self._propose(each) for each in self._agents])
        failed = {
            propose_key(self._number, agent.id): each
            for agent, each in zip(self._agents, made, strict=True)
            if isinstance(each, StepFailed)
        }
        if made and len(failed) == len(made) and not self._before and not self._debate.ending:
            raise debate_failure(failed, f"round {self._number} {PROPOSAL.name}")
        return _keep_contributions(made)

    async def _collect_critiques(self, proposals: Sequence[Contribution]) -> list[Contribution]:
        pairs = [(critic, each) for each in proposals for critic in self._agents if critic.id != each.agent]
        asked = [_criticize_plainly(self._debate, critic, each, self._guidance) for critic, each in pairs]
        return _keep_contributions(await self._run_phase(CRITIQUE, asked))

    async def _collect_refinements(
        self, proposals: Sequence[Contribution], critiques: Sequence[Contribution]
    ) -> list[Contribution]:
        by_id = {agent.id: agent for agent in self._agents}
        asked = []
        for each in proposals:
            received = [critique for critique in critiques if critique.target == each.agent]
            asked.append(_refine_plainly(self._debate, by_id[each.agent], each, received, self._guidance))
        return _keep_contributions(await self._run_phase(REFINEMENT, asked))

    def _propose(self, agent: Agent) -> Awaitable[Contribution | StepFailed]:
        earlier = self._before[agent.id].text if agent.id in self._before else ""
        return _propose_plainly(self._debate, self._number, agent, earlier, self._guidance)

    async def _run_phase(
        self, activity: Activity, asked: Sequence[Awaitable[Contribution | StepFailed]]
    ) -> list[Contribution | StepFailed]:
        marks = PhaseMarks(self._debate, self._number, activity, len(asked))

        async def run_with_marks(each: Awaitable[Contribution | StepFailed]) -> Contribution | StepFailed:
            marks.mark_start()
            made = await each
            marks.mark_end()
            return made

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(run_with_marks(each)) for each in asked]
        return [each.result() for each in running]


def _keep_contributions(made: Iterable[Contribution | StepFailed]) -> list[Contribution]:
    return [each for each in made if isinstance(each, Contribution)]


def _warn_of_ignored_settings(debate: Debate, settings: PanelSettings) -> None:
    """Say which settings ask for more than such a model can do."""
    asked = {
        "it cannot vote or merge: the judge answers": settings.synthesis_method != SYNTHESIS_METHOD_JUDGE,
        "all rounds are held": settings.termination.rule != TERMINATION_RULE_FIXED and settings.rounds > 1,
        "it asks nothing before it begins": debate.spec.HasField("clarifications"),
    }
    left_out = "; ".join(what for what, wanted in asked.items() if wanted)
    if left_out:
        debate.warn("demonstration", f"a very small model answers: {left_out}")


def _no_proposal_failure(debate: Debate) -> DebateFailedError:
    if debate.ending:
        return no_proposal_failure(debate, (agent.id for agent in debate.participants))
    return DebateFailedError("QUORUM_LOST", "every agent is muted", phase=f"round 1 {PROPOSAL.name}")
