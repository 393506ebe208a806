"""The synthesis: the judge writes the answer from all rounds and scores the work of every agent that has some."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parley.orchestrator import prompts
from parley.orchestrator.canonical import canonical_json
from parley.orchestrator.contributions import Contribution, label, quoted
from parley.orchestrator.debate import Debate
from parley.orchestrator.errors import DebateFailedError
from parley.orchestrator.events import Solution, StepFailed, UnfulfilledRequirement, Work
from parley.orchestrator.limits import may_pass
from parley.orchestrator.phases.summarize import summarize_last_round
from parley.orchestrator.recorded import Wishes
from parley.orchestrator.spec import DebateSpec
from parley.orchestrator.tasks import AnswerShape, Task

__all__ = ["CONFIDENCE_WITH_UNMET_REQUIREMENT", "synthesize"]

CONFIDENCE_WITH_UNMET_REQUIREMENT = 40
"""The most confidence an answer may have while a stated hard requirement is unmet."""

_KEY = "synthesis"


class _Requirement(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    hard: bool


class _Answer(BaseModel):
    """The judge's answer as it is asked for; the order is the order in which it is written."""

    model_config = ConfigDict(extra="forbid")

    description: Annotated[
        str, Field(min_length=1, description="The answer to the question, complete in itself.")
    ]
    implementation: Annotated[
        str, Field(description="How to carry it out; empty if nothing is to be carried out.")
    ]
    tradeoffs: Annotated[list[str], Field(max_length=12, description="What is given up for what.")]
    recommendations: Annotated[list[str], Field(max_length=12, description="What to do.")]
    unfulfilled_requirements: Annotated[
        list[_Requirement],
        Field(
            max_length=12, description="Requirements stated in the question that the answer does not meet."
        ),
    ]
    open_questions: Annotated[list[str], Field(max_length=12, description="What remains to be found out.")]
    confidence: Annotated[int, Field(ge=0, le=100, description="How sure you are, in percent.")]
    scores: Annotated[dict[str, float], Field(description="The score of each agent's work, 0 to 10.")]


async def synthesize(debate: Debate, rounds: Sequence[Sequence[Contribution]], wishes: Wishes) -> Solution:
    """Return the judge's answer over all rounds.

    Raises:
        DebateFailedError: the judge gave none.
    """
    spec, judge = debate.spec, debate.spec.judge
    work = [each for each in rounds[-1] if each.activity != "critique"]
    summary = await summarize_last_round(debate, judge, work)
    material = summary or quoted(spec, [each for held in rounds for each in held])
    worked = {each.agent for held in rounds for each in held if each.activity != "critique"}
    judged = [agent.id for agent in spec.agents if agent.id in worked]
    prompt = prompts.synthesize(spec, judge, material, judged, wishes.guidance)
    task = Task(Work("synthesis", judge.id), prompt, AnswerShape("synthesis", _schema(spec, judged)))
    reply = await debate.ask(_KEY, judge, task)
    if isinstance(reply, StepFailed):
        raise DebateFailedError(
            reply.reason,
            reply.message,
            agent=judge.id,
            phase="synthesis",
            steps=(_KEY,),
            awaited=(_KEY,) if may_pass(reply.reason) else (),
        )
    return _solution(spec, judged, reply.text)


def _schema(spec: DebateSpec, judged: Sequence[str]) -> str:
    schema: dict[str, Any] = _Answer.model_json_schema()
    labels = [label(spec, agent) for agent in judged]
    schema["properties"]["scores"] = {
        "type": "object",
        "description": "The score of each agent's work, 0 to 10.",
        "properties": {each: {"type": "integer", "minimum": 0, "maximum": 10} for each in labels},
        "required": labels,
        "additionalProperties": False,
    }
    return json.dumps(schema, ensure_ascii=False)


def _solution(spec: DebateSpec, judged: Sequence[str], text: str) -> Solution:
    try:
        answer = _Answer.model_validate_json(text)
        scores = {agent: answer.scores[label(spec, agent)] for agent in judged}
    except (ValidationError, KeyError) as error:
        # The gateway has checked the shape; a stored answer that is not of it was changed since.
        message = f"the judge's recorded answer is not of its shape: {canonical_json(str(error)[:200])}"
        raise DebateFailedError(
            "INVALID_STRUCTURED_ANSWER", message, agent=spec.judge.id, phase="synthesis", steps=(_KEY,)
        ) from error
    unmet = tuple(UnfulfilledRequirement(each.text, each.hard) for each in answer.unfulfilled_requirements)
    cap = CONFIDENCE_WITH_UNMET_REQUIREMENT if any(each.hard for each in unmet) else 100
    return Solution(
        description=answer.description,
        implementation=answer.implementation,
        tradeoffs=tuple(answer.tradeoffs),
        recommendations=tuple(answer.recommendations),
        unfulfilled_requirements=unmet,
        open_questions=tuple(answer.open_questions),
        confidence=min(answer.confidence, cap),
        synthesized_by=spec.judge.id,
        scores=scores,
    )
