"""Requirements: what an answer has to meet, drawn up once from what is stated, numbered, and followed to the judge.

The same step finds out of which kind the question is.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.prompting import direction, preamble
from parley.orchestrator.phases.schemas import Line, prompt_schema, schema_text, valid_items
from parley.v1.debate_pb2 import Requirement, UnfulfilledRequirement
from parley.v1.effect_pb2 import (
    QUESTION_KIND_CLOSED,
    QUESTION_KIND_OPEN,
    QUESTION_KIND_UNSPECIFIED,
    QuestionKind,
)
from parley.v1.event_pb2 import RequirementsListed, StepFailed

REQUIREMENTS = Activity("requirements", "lists what is required", title="list of requirements")
_KEY = "requirements"
_MAX_REQUIREMENTS = 12
_MAX_CHARACTERS = 400
KINDS_OF_QUESTIONS: Final = (
    "closed if it asks for a choice among options, a number, or yes or no; open if it asks for anything else, such as a plan, a"
    " design or an explanation"
)
"""What a model is to say of a question."""
_KINDS: Final[Mapping[str, QuestionKind.ValueType]] = {
    "closed": QUESTION_KIND_CLOSED,
    "open": QUESTION_KIND_OPEN,
}
_TASK = (
    "Before the debate begins, list what an answer has to meet. Take only what {given} or the person's"
    " answers state, in their own words as far as possible, one requirement a sentence. Add nothing that merely follows from"
    " good practice, and nothing that you would wish for. A requirement is hard if it is stated as a must, a must not, or a"
    f" fixed limit, and not hard if it is stated as a wish. At most {_MAX_REQUIREMENTS}, hard ones first. If nothing is"
    f" required, the list is empty. Say also of which kind the question is: {KINDS_OF_QUESTIONS}. Do not answer the question."
)


class _RequirementSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(description="What is required.")]
    hard: Annotated[bool, Field(description="Whether it is stated as a must.")]


class _RequirementsSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    requirements: Annotated[list[_RequirementSchema], Field(max_length=_MAX_REQUIREMENTS)]
    kind: Annotated[Literal["closed", "open"], Field(description="The kind of the question.")]


_SCHEMA = schema_text(prompt_schema(_RequirementsSchema))


class _ParsedRequirement(BaseModel):
    text: str
    hard: bool = False

    @model_validator(mode="before")
    @classmethod
    def _wrap_text(cls, given: Any) -> Any:
        return {"text": given} if isinstance(given, str) else given

    @field_validator("text")
    @classmethod
    def _check_not_empty(cls, text: str) -> str:
        plain = " ".join(text.split())
        if not plain:
            raise ValueError("it says nothing")
        return plain if len(plain) <= _MAX_CHARACTERS else f"{plain[:_MAX_CHARACTERS]}…"

    @field_validator("hard", mode="before")
    @classmethod
    def _is_true(cls, given: Any) -> bool:
        return given is True


class RequirementsAnswer(BaseModel):
    """A list of requirements as it is read: what is no requirement is left out, and so is what was listed before."""

    requirements: list[_ParsedRequirement]
    kind: Line = ""

    @field_validator("requirements", mode="before")
    @classmethod
    def _keep_valid(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        found: dict[str, _ParsedRequirement] = {}
        for each in valid_items(_ParsedRequirement, given):
            found.setdefault(each.text.casefold(), each)
        return list(found.values())[:_MAX_REQUIREMENTS]


class Requirements(Struct, frozen=True):
    """What was drawn up. A requirement's name is `R1`, `R2`, … in this order.

    Attributes:
        is_known: Whether it is known what is required; without that, nothing is listed.
        kind: Of which kind the question is.
    """

    items: tuple[Requirement, ...] = ()
    is_known: bool = False
    kind: QuestionKind.ValueType = QUESTION_KIND_UNSPECIFIED

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all requirements, in order."""
        return tuple(f"R{number}" for number in range(1, len(self.items) + 1))

    def to_prompt_text(self) -> str:
        """Return them as every later prompt gives them; empty if there are none."""
        if not self.items:
            return ""
        lines = [
            f"- {name}{' (a must)' if each.hard else ''}: {each.text}"
            for name, each in zip(self.names, self.items, strict=True)
        ]
        return direction("What the answer has to meet, as the judge found it stated", "\n".join(lines)).text

    def schema(self) -> dict[str, Any]:
        """Return the schema of what a judge says of each of them; there has to be one."""
        return {
            "type": "object",
            "description": "Of each requirement, whether your answer meets it.",
            "properties": {name: {"type": "boolean"} for name in self.names},
            "required": list(self.names),
            "additionalProperties": False,
        }

    def unmet(self, met: Mapping[str, bool]) -> list[UnfulfilledRequirement]:
        """Return those that a judge said are not met, in their own words; of which it said nothing, nothing is known."""
        return [
            UnfulfilledRequirement(text=each.text, hard=each.hard, number=number)
            for number, (name, each) in enumerate(zip(self.names, self.items, strict=True), start=1)
            if met.get(name) is False
        ]

    def numbers_met(self, met: Mapping[str, bool]) -> list[int]:
        """Return the numbers of those that a judge said are met."""
        return [number for number, name in enumerate(self.names, start=1) if met.get(name) is True]

    def names_without_verdict(self, met: Mapping[str, bool]) -> Sequence[str]:
        """Return the names of those of which a judge did not say whether they are met."""
        return [name for name in self.names if name not in met]


async def list_requirements(debate: Debate) -> Requirements:
    """Return what the question, its documents and clarifications require, as the judge finds it, and record it.

    The debate can do without: if the judge gives no list, it says so and goes on.
    """
    judge = debate.judge
    given = (
        "the question, its facts, the documents" if debate.spec.environment else "the question, the documents"
    )
    prompt = (*preamble(debate, judge), user_part(_TASK.format(given=given)))
    task = Task(REQUIREMENTS.create_work(judge.id), prompt)
    shape = AnswerShape("requirements", RequirementsAnswer, _SCHEMA, _render)
    answer = await debate.ask_structured(_KEY, judge, task, shape)
    if isinstance(answer, StepFailed):
        why = answer.message
        debate.warn(_KEY, f"what the question requires was not listed, and the debate goes on without: {why}")
        return Requirements()
    listed = tuple(Requirement(text=each.text, hard=each.hard) for each in answer.requirements)
    if listed:
        debate.record_event(f"{_KEY}/drawn-up", RequirementsListed(requirements=listed))
    return Requirements(listed, is_known=True, kind=parse_kind(answer.kind))


def parse_kind(said: str) -> QuestionKind.ValueType:
    """Return the kind of a question that a model said; unspecified for anything else."""
    return _KINDS.get(said.casefold(), QUESTION_KIND_UNSPECIFIED)


def _render(answer: RequirementsAnswer) -> str:
    lines = [
        f"- R{number}{' (a must)' if each.hard else ''}: {each.text}"
        for number, each in enumerate(answer.requirements, start=1)
    ]
    return "\n".join(lines) or "Nothing is stated."
