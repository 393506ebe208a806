"""What an evaluator says: read leniently, kept on the scale, and never made up."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from parley.orchestrator.formats.evaluation.dimensions import DIMENSIONS, scale
from parley.orchestrator.formats.evaluation.judgement import SHAPE, Judgement
from parley.v1.evaluation_pb2 import EvaluationDimension

NAMES = [each.name for each in DIMENSIONS]


def read(**given: Any) -> Judgement:
    return SHAPE.parse(json.dumps(given))


def test_the_dimensions_are_those_of_the_contract_and_each_has_anchors_for_the_whole_scale() -> None:
    numbers = [number for number in EvaluationDimension.values() if number]
    assert [each.number for each in DIMENSIONS] == numbers
    for each in DIMENSIONS:
        assert EvaluationDimension.Name(each.number) == f"EVALUATION_DIMENSION_{each.name.upper()}"
        assert all(anchor in scale() for anchor in each.anchors)
    assert scale().count("- 9-10: ") == len(DIMENSIONS)


def test_what_is_asked_for_is_what_is_read() -> None:
    asked = json.loads(SHAPE.json_schema)
    assert list(asked["properties"]) == list(Judgement.model_fields) == asked["required"]
    assert asked["additionalProperties"] is False
    assert list(Judgement.model_fields)[:7] == NAMES


@pytest.mark.parametrize(
    ("given", "score"),
    [
        (7, 7),
        (7.5, 7.5),
        ("8", 8),
        ("8/10", 8),
        ("6 out of 10.", 6),
        (14, 10),
        (0, 1),
        (-3, 1),
        ("11", 10),
        (None, None),
        (True, None),
        ("good", None),
        ([7], None),
    ],
)
def test_a_score_is_a_number_on_the_scale_or_absent(given: Any, score: float | None) -> None:
    judgement = read(testability={"score": 5, "reason": "so"}, security={"score": given, "reason": "why"})
    assert judgement.security.score == score
    assert judgement.security.reason == "why"
    assert judgement.performance.score is None


def test_a_bare_number_is_a_score_without_a_reason() -> None:
    assert read(security=9).security.score == 9
    assert read(security=9).security.reason == ""


def test_what_makes_no_sense_is_absent_and_the_rest_is_kept() -> None:
    judgement = read(
        security={"score": 4, "reason": ["a"]}, performance="fast", strengths="short", weaknesses=[3, " "]
    )
    assert judgement.security.score == 4
    assert judgement.security.reason == ""
    assert judgement.performance.score is None
    assert judgement.strengths == ["short"]
    assert judgement.weaknesses == []


@pytest.mark.parametrize(
    "text", ["{}", '{"security": {"score": null}}', "It is fine.", "[]", '{"security": "good"}']
)
def test_an_answer_without_any_score_is_none(text: str) -> None:
    with pytest.raises(ValidationError):
        SHAPE.parse(text)


@pytest.mark.parametrize(
    ("line", "score", "reason"),
    [
        ("Security: 7/10", 7, ""),
        ("- **Security**: 7 of 10. It checks keys.", 7, "It checks keys."),
        ("3. security (score: 8.5 out of 10) - no secrets", 8.5, "no secrets"),
        ("### Security Score — 12/10", 10, ""),
        ("| Security | 6 | no *secrets* |", 6, "no *secrets*"),
        ("**Security:** 4", 4, ""),
        ("Security: 3 holes were found", None, ""),
        ("Security: 1-2, it opens a door", None, ""),
        ("Of security I say 7/10", None, ""),
        ("Security: good", None, ""),
        ("Security: -3", 1, ""),
        ("Security-7/10", 7, ""),
    ],
)
def test_prose_is_scored_by_lines_that_begin_with_a_dimension(
    line: str, score: float | None, reason: str
) -> None:
    judgement = SHAPE.parse(f"My view.\n\nRequirements fulfilment: 9/10\r\n{line}\nPerformance\n5/10")
    assert (judgement.security.score, judgement.security.reason) == (score, reason)
    assert judgement.requirements_fulfilment.score == 9
    assert judgement.performance.score is None


def test_a_judgement_is_shown_with_what_was_not_scored() -> None:
    shown = SHAPE.render(read(security={"score": 8, "reason": "no secrets"}, strengths=["short"]))
    assert "- Security: 8 of 10. no secrets\n" in shown
    assert "- Performance: not scored\n" in shown
    assert shown.endswith("Strengths:\n\n- short")
