"""The analysis: what is to be decided, what it implies, who should debate it, and what the moderator must know first."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Self

from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.moderated.perspectives import MAX_DEBATERS, MIN_DEBATERS, Viewpoint
from parley.orchestrator.formats.moderated.words import ANALYSIS, MODERATOR_PROMPT
from parley.orchestrator.model.tasks import AnswerShape, Task, user_part
from parley.orchestrator.phases.clarify import Exchange, describe_answers
from parley.orchestrator.phases.failing import debate_failure, is_without_words
from parley.orchestrator.phases.prompting import preamble
from parley.orchestrator.phases.requirements import KINDS_OF_QUESTIONS
from parley.orchestrator.phases.schemas import (
    Line,
    default_if_invalid,
    extract_text,
    prompt_schema,
    schema_text,
)
from parley.v1.debate_pb2 import Answer, Clarifications, Question, Questions
from parley.v1.event_pb2 import StepFailed

_MAX_QUESTIONS: Final = 3
_MAX_LINES: Final = 8
_MAX_LINE_CHARACTERS: Final = 500
_MAX_TOPIC_CHARACTERS: Final = 80
_ASKS: Final = "Before the debate begins, the moderator asks:"
_TASK: Final = (
    "Analyse the question before anybody debates it; do not answer it.\n"
    "- topic: what is decided on, in a few words.\n"
    "- domain: the kind of decision, in a word or two, such as architecture, data, security, operations, product, finance.\n"
    "- constraints: what the question implies without saying it, such as little time or a small team. Only what follows from its"
    " words, and none rather than an invented one.\n"
    f"- kind: {KINDS_OF_QUESTIONS}.\n"
    "- binary: whether it is a choice between two options. debaters: how many perspectives it deserves, {fewest} for a choice"
    " between two, else 3 or {most}.\n"
    "- perspectives: those of the list below that have most to say on it, best first. Take such as would disagree.\n"
    "{asking}"
    "- assumptions: what you take for granted where the question leaves it open, so that the debate can begin.\n"
    "- opening: the question as you put it to the debaters, in two or three sentences: sharper than it was asked, and not wider."
)
_MAY_ASK: Final = (
    "- questions: what only the person who asks can tell, and without which the debate would go astray; at most {most}, the most"
    " decisive first. If the question is clear enough to be debated, ask nothing.\n"
)


class _AnalysisSchema(BaseModel):
    """An analysis as it is asked for."""

    model_config = ConfigDict(extra="forbid")

    topic: Annotated[str, Field(min_length=1, description="What is decided on, in a few words.")]
    domain: str
    constraints: Annotated[list[str], Field(max_length=_MAX_LINES)]
    kind: Literal["closed", "open"]
    binary: bool
    debaters: Annotated[int, Field(ge=MIN_DEBATERS, le=MAX_DEBATERS)]
    perspectives: Annotated[list[str], Field(max_length=MAX_DEBATERS)]
    questions: Annotated[list[str], Field(max_length=_MAX_QUESTIONS)]
    assumptions: Annotated[list[str], Field(max_length=_MAX_LINES)]
    opening: Annotated[str, Field(min_length=1)]


_AS_ASKED: Final = "the question is debated as it was asked"


class Analysis(BaseModel):
    """An analysis as it is read; what was not given, or makes no sense, is absent."""

    topic: str = ""
    domain: str = ""
    constraints: list[str] = []
    kind: Line = ""
    binary: bool = False
    debaters: int = 0
    perspectives: list[str] = []
    questions: list[str] = []
    assumptions: list[str] = []
    opening: str = ""

    _default_if_invalid = field_validator("*", mode="wrap")(default_if_invalid)

    @field_validator("topic", "domain", mode="after")
    @classmethod
    def _shorten(cls, text: str) -> str:
        return " ".join(text.split())[:_MAX_TOPIC_CHARACTERS].rstrip()

    @field_validator("constraints", "perspectives", "questions", "assumptions", mode="before")
    @classmethod
    def _keep_lines(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        lines = (" ".join(each.split())[:_MAX_LINE_CHARACTERS] for each in given if isinstance(each, str))
        return [line for line in lines if line][:_MAX_LINES]

    @model_validator(mode="after")
    def _check_not_empty(self) -> Self:
        if not self._says_something():
            raise ValueError("it says nothing")
        return self

    def _says_something(self) -> bool:
        return bool(self.topic or self.opening or self.perspectives)

    @property
    def debater_count(self) -> int:
        """How many debaters it asks for."""
        return MIN_DEBATERS if self.binary else min(max(self.debaters, MIN_DEBATERS + 1), MAX_DEBATERS)


class ProseAnalysis(Analysis):
    """What the moderator wrote in place of an analysis of the form that was asked for: nothing is known of the question by it."""

    said: Annotated[str, Field(min_length=1)]

    def _says_something(self) -> bool:
        return True


def _from_prose(text: str) -> ProseAnalysis:
    """Return what a text is that keeps to no form. Raises ValidationError if it has no words."""
    return ProseAnalysis(said=extract_text(text))


class AnalysisResult(Struct, frozen=True):
    """What came of the analysis.

    Attributes:
        answered: What was asked and a person answered, as lines.
        answers: The same, as the prompts give it.
        assumed: What is taken for granted, since no person was asked, or none answered.
    """

    analysis: Analysis
    answered: Sequence[str] = ()
    answers: Sequence[str] = ()
    assumed: Sequence[str] = field(default_factory=tuple)


def _briefing(exchanges: Sequence[Exchange]) -> list[str]:
    """Return what prompts say of the exchanges: what the moderator asked as a quotation, then the answers."""
    return [line for each in exchanges for line in describe_answers("the moderator", *each)]


async def analyse(debate: Debate, known: Sequence[Viewpoint], *, asks: bool) -> AnalysisResult:
    """Return the moderator's analysis. If it `asks`, what it must know is put to the person first.

    How often and how much, is said by the debate's clarifications; if these say nothing, once and three questions.
    Raise DebateFailedError if there is none.
    """
    allowed = (
        debate.spec.clarifications
        if debate.spec.HasField("clarifications")
        else Clarifications(max_per_agent=_MAX_QUESTIONS, max_times=1)
    )
    times = allowed.max_times if asks else 0
    exchanges: list[Exchange] = []
    found = await _ask_for_analysis(debate, 1, known, allowed.max_per_agent if times else 0)
    for time in range(1, times + 1):
        questions = found.questions[: allowed.max_per_agent]
        if not questions:
            break
        put = [
            Question(id=f"question-{number}", agent_id=debate.judge.id, text=each)
            for number, each in enumerate(questions, start=1)
        ]
        closed = await debate.run_checkpoint(
            f"analysis/{time}/questions", Questions(text=_ASKS, questions=put)
        )
        if closed.intervention.WhichOneof("act") != "answer":
            break  # the person wants them to begin with what they know
        answer = closed.intervention.answer
        exchanges.append((put, answer))
        debate.briefing = "\n".join(_briefing(exchanges))
        left = 0 if answer.enough or time == times else allowed.max_per_agent
        found = await _ask_for_analysis(debate, time + 1, known, left)
        if not left:
            break
    answered = tuple(line for each in exchanges for line in _answer_lines(*each))
    answers = tuple(_briefing(exchanges)) if answered else ()
    return AnalysisResult(found, answered, answers, tuple(found.assumptions))


async def _ask_for_analysis(
    debate: Debate, time: int, known: Sequence[Viewpoint], questions: int
) -> Analysis:
    judge = debate.judge
    asking = _MAY_ASK.format(most=questions) if questions else ""
    listed = "\n".join(
        f"- {each.name}: puts first {', '.join(each.priorities)}. {each.trade_offs}" for each in known
    )
    task_text = _TASK.format(fewest=MIN_DEBATERS, most=MAX_DEBATERS, asking=asking)
    prompt = (
        *preamble(debate, judge),
        user_part(f"{MODERATOR_PROMPT}\n\n{task_text}\n\nThe perspectives:\n{listed}"),
    )
    shape = AnswerShape("analysis", Analysis, _schema(known, questions), _render, _from_prose)
    key = f"analysis/{time}"
    found = await debate.ask_structured(key, judge, Task(ANALYSIS.create_work(judge.id), prompt), shape)
    if isinstance(found, StepFailed):
        if not is_without_words(found):
            raise debate_failure({key: found}, ANALYSIS.name)
        debate.warn(key, f"the moderator gave no analysis, and {_AS_ASKED}: {found.message}")
        return Analysis.model_construct()
    if isinstance(found, ProseAnalysis):
        debate.warn(key, f"the moderator's analysis is not of the form that was asked for, and {_AS_ASKED}")
    return found


def _answer_lines(questions: Sequence[Question], answer: Answer) -> list[str]:
    answers = {each.question_id: each.text.strip() for each in answer.answers}
    lines = [f"- {each.text}\n  {answers[each.id]}" for each in questions if answers.get(each.id)]
    if answer.text.strip():
        asked = "" if lines else f"{' '.join(each.text for each in questions)}\n  "
        lines.append(f"- {asked}{answer.text.strip()}")
    return lines


def _render(found: Analysis) -> str:
    if isinstance(found, ProseAnalysis):
        return found.said
    lines = [f"Topic: {found.topic or 'not said'}", f"Domain: {found.domain or 'not said'}"]
    for title, each in (
        ("Implied", found.constraints),
        ("Perspectives", found.perspectives),
        ("Questions", found.questions),
        ("Assumed", found.assumptions),
    ):
        lines += [f"{title}:", *(f"- {line}" for line in each)] if each else []
    return "\n".join(
        [*lines, *([f"Put to the debaters: {found.opening.strip()}"] if found.opening.strip() else [])]
    )


def _schema(known: Sequence[Viewpoint], questions: int) -> str:
    schema = prompt_schema(_AnalysisSchema)
    properties = schema["properties"]
    properties["perspectives"]["items"]["enum"] = [each.name for each in known]
    if questions:
        properties["questions"]["maxItems"] = questions
    else:
        del properties["questions"]
    return schema_text({**schema, "properties": properties, "required": list(properties)})
