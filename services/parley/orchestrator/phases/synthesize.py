"""The synthesis: the judge writes the answer from all rounds and scores the work of every agent that has some."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.tasks import Activity, AnswerShape, Prompt, Task
from parley.orchestrator.phases.answer_questions import AnswerQuestions
from parley.orchestrator.phases.effect import AnswerPositions
from parley.orchestrator.phases.past import ParsedRelations, PastQuestion
from parley.orchestrator.phases.prompting import FOR_READERS, guidance_of, instruction
from parley.orchestrator.phases.requirements import Requirements
from parley.orchestrator.phases.schemas import (
    default_if_invalid,
    extract_text,
    number_or_none,
    prompt_schema,
    schema_text,
)
from parley.orchestrator.phases.scoring import score_anchors, scores_schema
from parley.orchestrator.phases.situation import call_by_letters, common_preamble
from parley.orchestrator.phases.stand_in import ask_for_answer
from parley.orchestrator.phases.usable import create_check
from parley.v1.agent_pb2 import Agent
from parley.v1.event_pb2 import StepFailed

SYNTHESIS = Activity("synthesis", "writes the answer")
SECTION = "synthesize"
KEY = "synthesis"
_MAX_SCORE = 10


class _RequirementSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    hard: bool


class _AnswerSchema(BaseModel):
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
        list[_RequirementSchema],
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
    requirements_met: dict[str, bool] = {}
    open_questions: list[str] = []
    confidence: Annotated[int | None, Field(ge=0, le=100)] = None
    scores: dict[str, float] = {}
    earlier_decisions: ParsedRelations = []
    positions: AnswerPositions | None = None

    _default_if_invalid = field_validator("*", mode="wrap")(default_if_invalid)

    def to_text(self) -> str:
        """Return the answer with what belongs to it, as those read it who are to say whether they can live with it."""
        lists = (
            ("Recommendations", self.recommendations),
            ("Trade-offs", self.tradeoffs),
            ("Open questions", self.open_questions),
        )
        parts = [("Implementation", self.implementation)]
        parts += [(title, "\n".join(f"- {each}" for each in items)) for title, items in lists]
        return "\n\n".join(
            [self.description, *(f"{title}:\n\n{text}" for title, text in parts if text.strip())]
        )

    @field_validator("description")
    @classmethod
    def _check_not_empty(cls, description: str) -> str:
        if not description.strip():
            raise ValueError("it says nothing")
        return description

    @field_validator("unfulfilled_requirements", mode="before")
    @classmethod
    def _wrap_texts(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return [{"text": each} if isinstance(each, str) else each for each in given]

    @field_validator("requirements_met", mode="before")
    @classmethod
    def _keep_booleans(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        return {name: met for name, met in given.items() if isinstance(met, bool)}

    @field_validator("scores", mode="before")
    @classmethod
    def _keep_scores(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        scores = {letter: number_or_none(score, 0, _MAX_SCORE) for letter, score in given.items()}
        return {letter: score for letter, score in scores.items() if score is not None}


class ProseAnswer(JudgeAnswer):
    """What the judge wrote in place of an answer of the shape that was asked for."""


async def synthesize(
    debate: Debate,
    material: Prompt,
    judged: Sequence[str],
    guidance: Sequence[str],
    requirements: Requirements,
    asked: AnswerQuestions,
    works: Sequence[str],
) -> JudgeAnswer:
    """Return the judge's answer, with the scores that it gave the agents `judged`, which requirements are met, and what else is asked.

    What it was asked for and did not give is said in a warning. If it kept to no form, what it wrote is the answer.
    `material` is what the judge reads of the debate, `works` among it.

    Raises:
        DebateFailedError: the judge gave none, as `ask_for_answer` does.
    """
    judge = debate.judge
    letters = [debate.letter(agent) for agent in judged]
    whose = "every agent that has a final proposal" if len(letters) > 1 else f"agent {letters[0]}"
    task_text = (
        f"{FOR_READERS}{ask_of_requirements(requirements)} Score the work of {whose}, from 0 to {_MAX_SCORE}.\n"
        f"{score_anchors(_MAX_SCORE, of_one=len(letters) == 1)}{asked.to_task()}"
    )
    prompt = (
        *common_preamble(debate, judge, requirements.to_prompt_text()),
        *material,
        *asked.to_prompt(),
        *guidance_of(guidance),
        instruction(debate, judge, SECTION, task_text),
    )
    return await ask_answer(debate, judge, prompt, letters, requirements, asked, works)


def ask_of_requirements(requirements: Requirements) -> str:
    """Return the sentence of a task that asks whether the answer meets what is required; empty if nothing is."""
    return (
        " Fill in `requirements_met`: say of each requirement, by its number, whether your answer meets it."
        if requirements.items
        else ""
    )


async def ask_answer(
    debate: Debate,
    writer: Agent,
    prompt: Prompt,
    letters: Sequence[str],
    requirements: Requirements,
    asked: AnswerQuestions,
    works: Sequence[str],
) -> JudgeAnswer:
    """Return the answer that an agent gives to a prompt, with scores of the agents with these letters; none: it scores nobody.

    `works` are the proposals in the prompt.

    Raises:
        DebateFailedError: the writer gave none, as `ask_for_answer` does.
    """
    schema = _schema(letters, requirements, asked)
    shape = AnswerShape("synthesis", JudgeAnswer, schema, lambda said: said.description, answer_from_prose)
    check = create_check(debate.spec.question, prompt, works, schema)

    async def ask(key: str, again: Prompt) -> JudgeAnswer | StepFailed:
        task = Task(SYNTHESIS.create_work(writer.id), (*prompt, *again), is_answer=True, check=check)
        return await debate.ask_structured(key, writer, task, shape)

    answer = await ask_for_answer(debate, KEY, SYNTHESIS.name, ask)
    absent = _describe_missing(answer, letters, requirements, asked.past)
    if absent:
        debate.warn(KEY, absent)
    return answer


def answer_from_prose(text: str) -> ProseAnswer:
    """Return what a judge wrote as the answer. Raises ValidationError if it has no words."""
    return ProseAnswer(description=extract_text(text))


def _describe_missing(
    answer: JudgeAnswer, letters: Sequence[str], requirements: Requirements, past: PastQuestion
) -> str:
    """Return what the judge was asked for and did not give, in one line; empty if it gave all."""
    if isinstance(answer, ProseAnswer):
        return (
            "the judge's answer is not of the form that was asked for: it is shown as it was written, "
            "without confidence and scores"
        )
    unscored = [letter for letter in letters if letter not in answer.scores]
    absent = ["confidence"] if answer.confidence is None else []
    absent += [f"a score of {call_by_letters(unscored)}"] if unscored else []
    unsaid = ", ".join(requirements.names_without_verdict(answer.requirements_met))
    absent += [f"a word on whether it meets {unsaid}"] if unsaid else []
    unrelated = ", ".join(past.list_unanswered(answer.earlier_decisions))
    absent += [f"a word on how it stands to {unrelated}"] if unrelated else []
    return f"the judge's answer is without {' and '.join(absent)}" if absent else ""


def _schema(letters: Sequence[str], requirements: Requirements, asked: AnswerQuestions) -> str:
    """Return what is asked for. Requirements that are listed are asked about by number, and none that are not stated."""
    schema = prompt_schema(_AnswerSchema)
    properties = {**schema["properties"], "scores": scores_schema(letters, _MAX_SCORE)}
    if not letters:
        del properties["scores"]
    if requirements.items:
        met = {"requirements_met": requirements.schema()}
        properties = {
            name: each
            for key, value in properties.items()
            for name, each in (met if key == "unfulfilled_requirements" else {key: value}).items()
        }
    elif requirements.is_known:
        del properties["unfulfilled_requirements"]
    properties |= asked.schemas()
    return schema_text({**schema, "properties": properties, "required": list(properties)})
