"""A merge: one agent writes the answer out of all final proposals, and the others say what they hold against it."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity, AnswerShape, Prompt, Task, user_part
from parley.orchestrator.phases.prompting import FOR_READERS, preamble, quotation
from parley.orchestrator.phases.schemas import prompt_schema, schema_text
from parley.orchestrator.phases.stand_in import ask_for_answer
from parley.orchestrator.phases.usable import create_check
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Reply
from parley.v1.event_pb2 import StepFailed
from parley.v1.panel_pb2 import Objection

MERGE = Activity("merge", "merges the proposals")
OBJECTION = Activity("objection", "says whether it objects", "Objections")
KEY = "merge"


class _ObjectionSchema(BaseModel):
    """What an agent holds against an answer, as it is asked for."""

    model_config = ConfigDict(extra="forbid")

    objects: Annotated[bool, Field(description="Whether you object.")]
    objection: Annotated[str, Field(description="What you object to; empty if you do not.")]


async def merge(
    debate: Debate,
    writer: Agent,
    work: Sequence[Contribution],
    guidance: Sequence[str],
    *,
    requirements: str,
    material: Prompt,
) -> str:
    """Return the answer that an agent writes out of the work of all. `material`: what else it reads.

    Raises:
        DebateFailedError: it gave none, as `ask_for_answer` does.
    """
    task_text = (
        "Write one answer out of these proposals. Answer the question directly and completely. Keep what they agree on,"
        " take the best of each where they differ, and say so where a difference cannot be settled. Add nothing that none"
        f" of them argues. Write the answer itself, complete in itself. {FOR_READERS}"
    )
    prompt = (
        *preamble(debate, writer, guidance, requirements=requirements),
        *material,
        *(quotation(f"Proposal of agent {debate.letter(each.agent)}", each.text) for each in work),
        user_part(task_text),
    )
    check = create_check(debate.spec.question, prompt, [each.text for each in work])

    async def ask(key: str, again: Prompt) -> Reply | StepFailed:
        task = Task(MERGE.create_work(writer.id), (*prompt, *again), is_answer=True, check=check)
        return await debate.ask(key, writer, task)

    return (await ask_for_answer(debate, KEY, MERGE.name, ask)).text


async def collect_objections(
    debate: Debate,
    agents: Sequence[Agent],
    work: Sequence[Contribution],
    answer: str,
    *,
    requirements: str,
) -> list[Objection]:
    """Return what agents hold against an answer. Whoever is not asked any more, or fails, says nothing."""
    proposals = {each.agent: each.text for each in work}
    replies = await asyncio.gather(
        *(
            _ask_for_objection(debate, each, proposals.get(each.id, ""), answer, requirements)
            for each in agents
        )
    )
    objections = [
        Objection(agent_id=agent.id, text=reply.objection.strip())
        for agent, reply in zip(agents, replies, strict=True)
        if isinstance(reply, _ObjectionSchema) and reply.objects and reply.objection.strip()
    ]
    return sorted(objections, key=lambda each: each.agent_id)


async def _ask_for_objection(
    debate: Debate, agent: Agent, own: str, answer: str, requirements: str
) -> _ObjectionSchema | StepFailed:
    task_text = (
        "This answer was written out of all proposals, yours too. Object only to what is wrong, or would do harm, or leaves"
        " out what the question cannot do without; not to what you would have said otherwise."
    )
    prompt = (
        *preamble(debate, agent, requirements=requirements),
        *([quotation("Your proposal", own)] if own else []),
        quotation("The answer", answer),
        user_part(task_text),
    )
    task = Task(OBJECTION.create_work(agent.id), prompt)
    shape = AnswerShape("stand", _ObjectionSchema, schema_text(prompt_schema(_ObjectionSchema)), _render)
    return await debate.ask_structured(f"{KEY}/objection/{agent.id}", agent, task, shape)


def _render(reply: _ObjectionSchema) -> str:
    return f"Objects: {reply.objection}" if reply.objects else "Does not object."
