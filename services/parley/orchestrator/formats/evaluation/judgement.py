"""What an evaluator answers: how it is asked for, and how it is read. What was not given is absent, and never made up."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from parley.orchestrator.formats.evaluation.dimensions import DIMENSIONS, MAX_SCORE, MIN_SCORE
from parley.orchestrator.model.tasks import AnswerShape
from parley.orchestrator.phases.schemas import Line, clamped_or_none, default_if_invalid

_MAX_POINTS: Final = 12
_NUMBER: Final = re.compile(r"\s*(?P<number>-?\d{1,6}(?:\.\d{1,6})?)\s*(?:(?:/|of|out of)\s*10)?\s*\.?\s*")

_GAP: Final = r"[^\w\n]{1,6}"


def _line_pattern(title: str) -> re.Pattern[str]:
    """Return what matches a line of prose that scores a dimension, such as `**Security** (score: 7/10): it checks keys`.

    A number that more words follow, as in `Security: 3 holes`, is no score.
    """
    name = r"[ _-]".join(title.split())
    score = r"(?<! -)(?P<score>-?\d{1,2}(?:\.\d{1,2})?)[ ]?(?:(?:/|of|out of)[ ]?10\b|(?=[ *]*(?:\||$)))"
    return re.compile(
        rf"^[^\w\n]*(?:\d\d?{_GAP})?{name}{_GAP}(?:score{_GAP})?{score}[^\w\n]*(?P<reason>.*)$",
        re.IGNORECASE | re.MULTILINE,
    )


_LINES: Final = {each.name: _line_pattern(each.title) for each in DIMENSIONS}


class DimensionJudgement(BaseModel):
    """A score and its reason; a score beyond the scale is cut to it."""

    score: float | None = None
    reason: Line = ""

    @field_validator("score", mode="before")
    @classmethod
    def _clamp_score(cls, given: Any) -> float | None:
        written = _NUMBER.fullmatch(given) if isinstance(given, str) else None
        return clamped_or_none(float(written["number"]) if written else given, MIN_SCORE, MAX_SCORE)


class Judgement(BaseModel):
    """An evaluator's answer. It has one score at least."""

    functional_completeness: DimensionJudgement = DimensionJudgement()
    performance: DimensionJudgement = DimensionJudgement()
    security: DimensionJudgement = DimensionJudgement()
    maintainability: DimensionJudgement = DimensionJudgement()
    compliance: DimensionJudgement = DimensionJudgement()
    testability: DimensionJudgement = DimensionJudgement()
    requirements_fulfilment: DimensionJudgement = DimensionJudgement()
    strengths: Annotated[list[str], Field(max_length=_MAX_POINTS)] = []
    weaknesses: Annotated[list[str], Field(max_length=_MAX_POINTS)] = []

    _default_if_invalid = field_validator("*", mode="wrap")(default_if_invalid)

    @field_validator(*(each.name for each in DIMENSIONS), mode="before")
    @classmethod
    def _wrap_number(cls, given: Any) -> Any:
        return given if isinstance(given, Mapping) else {"score": given}

    @field_validator("strengths", "weaknesses", mode="before")
    @classmethod
    def _keep_texts(cls, given: Any) -> Any:
        points = given if isinstance(given, list) else [given]
        texts = (" ".join(each.split()) for each in points if isinstance(each, str))
        return [each for each in texts if each][:_MAX_POINTS]

    @model_validator(mode="after")
    def _check_has_score(self) -> Self:
        if all(each.score is None for each in self.by_dimension().values()):
            raise ValueError("it holds no score")
        return self

    def by_dimension(self) -> Mapping[str, DimensionJudgement]:
        """Return what is said of each dimension, by name and in order."""
        return {each.name: getattr(self, each.name) for each in DIMENSIONS}


def _render(judgement: Judgement) -> str:
    lines = [
        f"- {each.title}: {_render_dimension(judged)}"
        for each, judged in zip(DIMENSIONS, judgement.by_dimension().values(), strict=True)
    ]
    for title, points in (("Strengths", judgement.strengths), ("Weaknesses", judgement.weaknesses)):
        if points:
            lines += ["", f"{title}:", "", *(f"- {each}" for each in points)]
    return "\n".join(lines)


def _render_dimension(judged: DimensionJudgement) -> str:
    score = "not scored" if judged.score is None else f"{judged.score:g} of {MAX_SCORE}"
    return f"{score}. {judged.reason}" if judged.reason else score


def _read_prose(text: str) -> Judgement:
    """Return the scores that lines of a text give, each with the rest of its line. Raise ValidationError if there is none."""
    found = {name: line for name, pattern in _LINES.items() if (line := pattern.search(text)) is not None}
    scores = {
        name: {"score": line["score"], "reason": line["reason"].strip(" |")} for name, line in found.items()
    }
    return Judgement.model_validate(scores)


def _schema() -> str:
    # No bounds: a score beyond the scale is cut to it, and is no reason to ask again.
    judged = {
        "type": "object",
        "properties": {
            "score": {
                "anyOf": [{"type": "number"}, {"type": "null"}],
                "description": f"{MIN_SCORE} to {MAX_SCORE}; null where it cannot be judged.",
            },
            "reason": {"type": "string", "description": "Why, in a sentence or two."},
        },
        "required": ["score", "reason"],
        "additionalProperties": False,
    }
    points = {"type": "array", "items": {"type": "string"}}
    properties: dict[str, Any] = {each.name: judged | {"description": each.asks} for each in DIMENSIONS}
    properties["strengths"] = points | {"description": "What is good, the most important first; at most 5."}
    properties["weaknesses"] = points | {
        "description": "What is not good, the most important first; at most 5."
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return json.dumps(schema, ensure_ascii=False)


# A text that is not of the form is taken over from the gateway all the same: whatever scores it holds are read.
SHAPE: Final = AnswerShape("evaluation", Judgement, _schema(), _render, _read_prose)
"""The shape of an evaluator's answer."""
