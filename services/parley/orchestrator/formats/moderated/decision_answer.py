"""The moderator's decision as it is asked for and read."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from parley.orchestrator.formats.moderated.points import letter_in
from parley.orchestrator.model.tasks import AnswerShape
from parley.orchestrator.phases.schemas import asked_schema, or_absent, schema_text, words_of

__all__ = ["DecisionAnswer", "decision_shape"]

_MAX_LINES: Final = 12


class _AskedPerspective(BaseModel):
    model_config = ConfigDict(extra="forbid")

    agent: str
    key_arguments: list[str]


class _AskedTension(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    open: bool


class _AskedDissent(BaseModel):
    model_config = ConfigDict(extra="forbid")

    agent: str
    text: str


class _Asked(BaseModel):
    """A decision as it is asked for; the order is the order in which it is written."""

    model_config = ConfigDict(extra="forbid")

    topic: Annotated[str, Field(min_length=1)]
    perspectives: list[_AskedPerspective]
    agreements: Annotated[list[str], Field(max_length=_MAX_LINES)]
    tensions: Annotated[list[_AskedTension], Field(max_length=_MAX_LINES)]
    recommendation: Annotated[str, Field(min_length=1)]
    confidence: Literal["high", "medium", "low"]
    caveats: Annotated[list[str], Field(max_length=_MAX_LINES)]
    dissents: Annotated[list[_AskedDissent], Field(max_length=_MAX_LINES)]


class PerspectiveRead(BaseModel):
    """What is said of a perspective."""

    agent: str = ""
    key_arguments: list[str] = []

    _or_absent = field_validator("*", mode="wrap")(or_absent)
    _letter = field_validator("agent", mode="after")(letter_in)


class TensionRead(BaseModel):
    """A tension; one of which it is not said is open."""

    text: str = ""
    open: bool = True

    _or_absent = field_validator("*", mode="wrap")(or_absent)


class DissentRead(BaseModel):
    """What an agent holds against the recommendation."""

    agent: str = ""
    text: str = ""

    _or_absent = field_validator("*", mode="wrap")(or_absent)
    _letter = field_validator("agent", mode="after")(letter_in)


class DecisionAnswer(BaseModel):
    """A decision as it is read; what was not given, or makes no sense, is absent."""

    topic: str = ""
    perspectives: list[PerspectiveRead] = []
    agreements: list[str] = []
    tensions: list[TensionRead] = []
    recommendation: Annotated[str, Field(min_length=1)]
    confidence: Literal["high", "medium", "low", ""] = ""
    caveats: list[str] = []
    dissents: list[DissentRead] = []

    _or_absent = field_validator(
        "topic", "perspectives", "agreements", "tensions", "confidence", "caveats", "dissents", mode="wrap"
    )(or_absent)

    @field_validator("recommendation")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("it says nothing")
        return text.strip()

    @field_validator("confidence", mode="before")
    @classmethod
    def _lower(cls, given: Any) -> Any:
        return given.strip().casefold() if isinstance(given, str) else given

    @field_validator("agreements", "caveats", mode="before")
    @classmethod
    def _lines(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return [each.strip() for each in given if isinstance(each, str) and each.strip()]

    @field_validator("tensions", mode="before")
    @classmethod
    def _tensions(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return [{"text": each} if isinstance(each, str) else each for each in given if each]

    @field_validator("perspectives", "dissents", mode="before")
    @classmethod
    def _objects(cls, given: Any) -> Any:
        return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else given


def decision_shape(letters: Sequence[str]) -> AnswerShape[DecisionAnswer]:
    """Return the shape of a decision on a debate of the agents with these letters."""
    return AnswerShape("decision", DecisionAnswer, _schema(letters), _rendered, _prose)


def _prose(text: str) -> DecisionAnswer:
    """Return the decision that a text is which keeps to no form. Raises ValidationError where it holds no words."""
    return DecisionAnswer(recommendation=words_of(text))


def _rendered(answer: DecisionAnswer) -> str:
    return answer.recommendation


def _schema(letters: Sequence[str]) -> str:
    schema = asked_schema(_Asked)
    for field in ("perspectives", "dissents"):
        schema["properties"][field]["items"]["properties"]["agent"]["enum"] = list(letters)
    return schema_text(schema)
