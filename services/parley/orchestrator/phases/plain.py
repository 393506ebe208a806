"""Proposals, critiques, refinements and the answer of a debate that a very small model holds.

Such a model follows one short instruction, loses its way in several, and copies what looks like a pattern. So it is asked for
prose alone, in a few words without names or letters, each answer is begun for it, and of what it wrote the whole sentences count.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.sentences import first_sentence, to_prose
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Prompt, Task, system_part, user_part
from parley.orchestrator.phases import critique, propose, refine
from parley.orchestrator.phases.failing import failed_for_want_of
from parley.orchestrator.phases.prompting import CONTEXT_GIVES, MATERIAL_GIVES
from parley.orchestrator.phases.synthesize import KEY, SYNTHESIS
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.event_pb2 import StepFailed
from parley.v1.gateway_pb2 import PromptPart

__all__ = ["criticize_plainly", "propose_plainly", "recommend", "refine_plainly"]

_TOKENS: Final = 64
"""Of a contribution where the debate names no bound: three sentences or so, some seconds of such a model."""
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


async def propose_plainly(
    debate: Debate, number: int, agent: AgentSpec, earlier: str, guidance: Sequence[str]
) -> Contribution | StepFailed:
    """Ask an agent for its proposal. `earlier` is what it said in the round before; empty in the first."""
    told = [_material("You said before", [earlier])] if earlier else []
    prompt = (*_preamble(debate, agent, guidance), *told)
    work = propose.PROPOSAL.create_work(agent.id, number)
    task = _task(debate, work, prompt, "I propose to", concurrency=propose.CONCURRENCY)
    return _contribution(await debate.ask(propose.propose_key(number, agent.id), agent, task), work)


async def criticize_plainly(
    debate: Debate, critic: AgentSpec, proposal: Contribution, guidance: Sequence[str]
) -> Contribution | StepFailed:
    """Ask an agent what speaks against a proposal."""
    prompt = (
        *_preamble(debate, critic, guidance),
        _material("A colleague says", [proposal.text]),
        user_part("What speaks against it?"),
    )
    work = critique.CRITIQUE.create_work(critic.id, proposal.round, proposal.agent)
    key = f"round/{proposal.round}/critique/{critic.id}/of/{proposal.agent}"
    task = _task(debate, work, prompt, "The problem with this is that", concurrency=critique.CONCURRENCY)
    return _contribution(await debate.ask(key, critic, task), work)


async def refine_plainly(
    debate: Debate,
    agent: AgentSpec,
    proposal: Contribution,
    critiques: Sequence[Contribution],
    guidance: Sequence[str],
) -> Contribution | StepFailed:
    """Ask an agent for its revised proposal."""
    prompt = (
        *_preamble(debate, agent, guidance),
        _material("You said", [proposal.text]),
        *([_material("Colleagues say", [each.text for each in critiques])] if critiques else []),
        user_part("What do you propose now?"),
    )
    work = refine.REFINEMENT.create_work(agent.id, proposal.round)
    key = f"round/{proposal.round}/refine/{agent.id}"
    task = _task(debate, work, prompt, "I now propose to", concurrency=refine.CONCURRENCY)
    return _contribution(await debate.ask(key, agent, task), work)


async def recommend(debate: Debate, works: Sequence[Contribution], guidance: Sequence[str]) -> str:
    """Return the judge's answer: whole sentences, and where they are few, the panel's first one after them.

    Raises:
        DebateFailedError: the judge gave none.
    """
    judge = debate.spec.judge
    prompt = (
        *_preamble(debate, judge, guidance, who="You give advice in plain sentences."),
        _material("Experts say", [each.text for each in works]),
        user_part("What do you recommend, and why?"),
    )
    task = _task(debate, SYNTHESIS.create_work(judge.id), prompt, "I recommend to", is_answer=True)
    reply = await debate.ask(KEY, judge, task)
    if isinstance(reply, StepFailed):
        raise failed_for_want_of({KEY: reply}, SYNTHESIS.name)
    answer = to_prose(reply.text)
    if len(answer) >= _MIN_ANSWER_CHARACTERS or not works:
        return answer
    return f"{answer} {first_sentence(works[0].text)}"


def _preamble(debate: Debate, agent: AgentSpec, guidance: Sequence[str], who: str = "") -> Prompt:
    """Return what every prompt begins with: who the agent is, the question, the documents, what the person said."""
    value = _VALUES.get(agent.role, "good work")
    own = agent.system_prompt.text if agent.system_prompt else ""
    usual = f"You are a software engineer who values {value}. You answer in two short sentences."
    parts = [
        system_part(own or who or usual),
        user_part(f"Question: {debate.spec.question}"),
    ]
    parts += debate.documents.parts(CONTEXT_GIVES)
    parts += [user_part(f"Mind this: {each}") for each in guidance]
    return tuple(parts)


def _material(title: str, texts: Sequence[str]) -> PromptPart:
    """Return what others said: one text behind its title, several below it."""
    said = texts[0] if len(texts) == 1 else "\n" + "\n".join(f"- {each}" for each in texts)
    return user_part(f"{title}: {said}", MATERIAL_GIVES)


def _task(
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


def _contribution(reply: Reply | StepFailed, work: Work) -> Contribution | StepFailed:
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(
        work.agent_id, work.activity, work.round, to_prose(reply.text), target=work.target_agent_id
    )
