"""Clarifications: before the first round, agents ask the person what they must know. The answers stand in every later prompt."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.prompting import fit_questions, preamble, quotation
from parley.orchestrator.phases.schemas import prompt_schema, schema_text
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Answer, Clarifications, Question, Questions
from parley.v1.event_pb2 import StepFailed


def describe_answers(asker: str, questions: Sequence[Question], answer: Answer) -> list[str]:
    """Return lines for a prompt: the questions that were answered, quoted, and the answers; nothing if there is none.

    `asker` says who asked, such as `the agents`. An answer in one text is to all of the questions, if it is the only one.
    """
    answers = {each.question_id: each.text.strip() for each in answer.answers}
    answered = [each for each in questions if answers.get(each.id)]
    whole = answer.text.strip()
    if not (answered or whole):
        return []
    asked = "\n".join(f"{number}. {each.text}" for number, each in enumerate(answered or questions, start=1))
    return [
        quotation(f"What {asker} asked", asked).text,
        "Answers of the person who asks:",
        *(f"- to {number}: {answers[each.id]}" for number, each in enumerate(answered, start=1)),
        *([f"- {whole}"] if whole else []),
    ]


CLARIFICATION = Activity("clarification", "asks what it must know", "Clarifications")
SECTION = "clarify"
_TEXT = "Before they begin, the agents ask:"
_MAX_QUESTION_CHARACTERS = 500

Exchange: TypeAlias = tuple[Sequence[Question], Answer]
"""What was asked, and what the person who asks answered."""


class _QuestionsSchema(BaseModel):
    """What an agent asks."""

    model_config = ConfigDict(extra="forbid")

    questions: Annotated[
        list[str], Field(description="Your questions, the most decisive first; empty if nothing is unclear.")
    ]


def _briefing(exchanges: Sequence[Exchange]) -> str:
    """Return what every prompt says of all that was asked and answered."""
    return "\n".join(line for asked in exchanges for line in describe_answers("the agents", *asked))


async def clarify(debate: Debate) -> None:
    """Put the agents' questions to the person, until there are none or enough was asked, and brief all agents."""
    allowed = debate.spec.clarifications
    if not debate.spec.HasField("clarifications"):
        return
    exchanges: list[Exchange] = []
    for time in range(1, allowed.max_times + 1):
        questions = await _ask_all(debate, time, allowed)
        if not questions:
            break
        closed = await debate.run_checkpoint(f"clarify/{time}", Questions(text=_TEXT, questions=questions))
        if closed.intervention.WhichOneof("act") != "answer":
            break  # the person wants them to begin with what they know
        exchanges.append((questions, closed.intervention.answer))
        debate.briefing = _briefing(exchanges)
        if closed.intervention.answer.enough:
            break


async def _ask_all(debate: Debate, time: int, allowed: Clarifications) -> list[Question]:
    asked = await asyncio.gather(*(_ask(debate, time, each, allowed) for each in debate.participants))
    found: list[Question] = []
    for agent, questions in zip(debate.participants, asked, strict=True):
        for number, text in enumerate(questions, start=1):
            if text.casefold() not in {each.text.casefold() for each in found}:
                found.append(Question(id=f"{agent.id}-{number}", agent_id=agent.id, text=text))
    return found


async def _ask(debate: Debate, time: int, agent: Agent, allowed: Clarifications) -> Sequence[str]:
    section = agent.clarification_prompt.text or fit_questions(debate.instructions(agent)[SECTION])
    limits = f"Ask at most {allowed.max_per_agent} questions. Do not ask what was answered already."
    task = Task(
        CLARIFICATION.create_work(agent.id), (*preamble(debate, agent), user_part(f"{section}\n\n{limits}"))
    )
    key = f"clarify/{time}/{agent.id}"
    shape = AnswerShape("questions", _QuestionsSchema, _create_schema(allowed.max_per_agent), _render)
    asked = await debate.ask_structured(key, agent, task, shape)
    if isinstance(asked, StepFailed):
        debate.warn(key, f"{agent.name} could not say what it must know: {asked.message}")
        return ()
    texts = (" ".join(each.split())[:_MAX_QUESTION_CHARACTERS] for each in asked.questions)
    return [text for text in texts if text][: allowed.max_per_agent]


def _render(asked: _QuestionsSchema) -> str:
    return "\n".join(f"- {each}" for each in asked.questions) or "Nothing is unclear."


def _create_schema(most: int) -> str:
    schema = prompt_schema(_QuestionsSchema)
    schema["properties"]["questions"]["maxItems"] = most
    return schema_text(schema)
