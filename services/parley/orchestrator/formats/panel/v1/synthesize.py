"""The synthesis: the judge writes the answer from all rounds and scores the work of every agent that has some."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic_core import PydanticUseDefault

from parley.orchestrator.engine.budget import is_transient
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.panel.v1.prompting import instruction, preamble, quotation
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task
from parley.v1.event_pb2 import StepFailed, Warned

__all__ = ["KEY", "SECTION", "SYNTHESIS", "JudgeAnswer", "ProseAnswer", "prose_answer", "synthesize"]

SYNTHESIS = Activity("synthesis", "writes the answer")
SECTION = "synthesize"
KEY = "synthesis"
_MAX_SCORE = 10


class _Requirement(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    hard: bool


class _AskedAnswer(BaseModel):
    """The judge's answer as it is asked for; the order is the order in which it is written."""

    model_config = ConfigDict(extra="forbid", title="JudgeAnswer")

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


class UnmetRequirement(BaseModel):
    """A requirement that the answer does not meet; a must only if the judge says so."""

    text: Annotated[str, Field(min_length=1)]
    hard: bool = False


class JudgeAnswer(BaseModel):
    """The judge's answer as it is read. What was not given, or makes no sense, is absent and never made up."""

    description: Annotated[str, Field(min_length=1)]
    implementation: str = ""
    tradeoffs: list[str] = []
    recommendations: list[str] = []
    unfulfilled_requirements: list[UnmetRequirement] = []
    open_questions: list[str] = []
    confidence: Annotated[int | None, Field(ge=0, le=100)] = None
    scores: dict[str, float] = {}

    @field_validator("*", mode="wrap")
    @classmethod
    def _or_absent(cls, value: Any, read: ValidatorFunctionWrapHandler) -> Any:
        try:
            return read(value)
        except ValidationError:
            raise PydanticUseDefault from None

    @field_validator("description")
    @classmethod
    def _says_something(cls, description: str) -> str:
        if not description.strip():
            raise ValueError("it says nothing")
        return description

    @field_validator("unfulfilled_requirements", mode="before")
    @classmethod
    def _texts_are_requirements(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return [{"text": each} if isinstance(each, str) else each for each in given]

    @field_validator("scores", mode="before")
    @classmethod
    def _only_scores(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        return {letter: score for letter, score in given.items() if _is_score(score)}


class ProseAnswer(JudgeAnswer):
    """What the judge wrote in place of an answer of the shape that was asked for."""


def _is_score(given: Any) -> bool:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return math.isfinite(given) and 0 <= given <= _MAX_SCORE


async def synthesize(
    debate: Debate, material: str, judged: Sequence[str], guidance: Sequence[str]
) -> JudgeAnswer:
    """Return the judge's answer, with the scores that it gave the agents `judged`, by their letters.

    What it was asked for and did not give is said in a warning. If it kept to no form, what it wrote is the answer.
    `material` is all rounds, or the judge's summary of the last one.

    Raises:
        DebateFailedError: the judge gave none.
    """
    judge = debate.spec.judge
    letters = [debate.letter(agent) for agent in judged]
    told = f"Write the answer. Score the work of every agent ({', '.join(letters)}) from 0 to 10."
    prompt = (
        *preamble(debate, judge, guidance=guidance),
        quotation("The debate", material),
        instruction(judge, SECTION, told),
    )
    task = Task(SYNTHESIS.create_work(judge.id), prompt, is_answer=True)
    shape = AnswerShape("synthesis", JudgeAnswer, _schema(letters), _render, prose_answer)
    answer = await debate.ask_structured(KEY, judge, task, shape)
    if isinstance(answer, StepFailed):
        raise _failure(judge.id, answer.reason, answer.message)
    absent = _absent(answer, letters)
    if absent:
        debate.record_event(f"{KEY}/warning", Warned(message=absent))
    return answer


def prose_answer(text: str) -> ProseAnswer:
    """Return what a judge wrote as the answer. Raises ValidationError where it holds no words."""
    try:
        value = json.loads(text)
        words = _words(value) if isinstance(value, dict | list) else text
    except (ValueError, RecursionError):
        words = text
    return ProseAnswer(description=words)


def _words(value: Any) -> str:
    """Return the texts in a JSON value that says none of what was asked for, as Markdown."""
    if isinstance(value, dict):
        said = ((key, _words(each)) for key, each in value.items())
        return "\n\n".join(f"{key}: {words}" for key, words in said if words)
    if isinstance(value, list):
        return "\n".join(f"- {words}" for words in map(_words, value) if words)
    return value.strip() if isinstance(value, str) else ""


def _absent(answer: JudgeAnswer, letters: Sequence[str]) -> str:
    """Return what the judge was asked for and did not give, in one line; empty if it gave all."""
    if isinstance(answer, ProseAnswer):
        return (
            "the judge's answer is not of the form that was asked for: it is shown as it was written, "
            "without confidence and scores"
        )
    unscored = ", ".join(letter for letter in letters if letter not in answer.scores)
    absent = ["confidence"] if answer.confidence is None else []
    absent += [f"a score of {unscored}"] if unscored else []
    return f"the judge's answer is without {' and '.join(absent)}" if absent else ""


def _failure(judge: str, reason: str, message: str) -> DebateFailedError:
    awaited = (KEY,) if is_transient(reason) else ()
    return DebateFailedError(
        reason, message, agent=judge, phase=SYNTHESIS.name, steps=(KEY,), awaited=awaited
    )


def _render(answer: JudgeAnswer) -> str:
    return answer.description


def _schema(letters: Sequence[str]) -> str:
    schema: dict[str, Any] = _AskedAnswer.model_json_schema()
    schema["properties"]["scores"] = {
        "type": "object",
        "description": "The score of each agent's work, 0 to 10.",
        "properties": {each: {"type": "integer", "minimum": 0, "maximum": 10} for each in letters},
        "required": list(letters),
        "additionalProperties": False,
    }
    return json.dumps(schema, ensure_ascii=False)
