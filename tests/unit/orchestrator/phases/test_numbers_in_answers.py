"""Numbers in answers: of any size, no numbers at all, and never an error."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.formats.evaluation.judgement import Judgement
from parley.orchestrator.phases.assess import Support
from parley.orchestrator.phases.critique import CritiqueAnswer
from parley.orchestrator.phases.judge_proposals import Judgement as Ranking
from parley.orchestrator.phases.schemas import clamped_or_none, number_or_none
from parley.orchestrator.phases.synthesize import JudgeAnswer

HUGE = int("9" * 309)
ODD: list[Any] = [HUGE, -HUGE, math.nan, math.inf, -math.inf, "1,5", "8", True, None, [], {}, [7], {"a": 7}]


@pytest.mark.parametrize("given", ODD)
def test_what_is_no_number_within_the_bounds_is_none(given: Any) -> None:
    assert number_or_none(given, 0, 10) is None


@pytest.mark.parametrize(("given", "cut"), [(HUGE, 10), (-HUGE, 0), (1e308, 10), (7, 7), (2.5, 2.5)])
def test_a_number_beyond_the_bounds_is_cut_to_them_where_that_is_asked_for(given: Any, cut: float) -> None:
    assert clamped_or_none(given, 0, 10) == cut


@pytest.mark.parametrize("given", [math.nan, math.inf, -math.inf, "8", True, None, [7]])
def test_what_is_no_finite_number_is_not_cut(given: Any) -> None:
    assert clamped_or_none(given, 0, 10) is None


@given(st.integers() | st.floats() | st.booleans() | st.text(max_size=5))
def test_a_number_that_is_read_is_finite_and_within_the_bounds(given: Any) -> None:
    for number in (number_or_none(given, -1, 1), clamped_or_none(given, -1, 1)):
        assert number is None or (math.isfinite(number) and -1 <= number <= 1)


@pytest.mark.parametrize("number", ["9" * 309, "-" + "9" * 309, "1e999", "NaN"])
def test_every_answer_that_holds_numbers_is_read_without_them(number: str) -> None:
    def text(answer: dict[str, Any]) -> str:
        return json.dumps(answer).replace('"#"', number)

    synthesis = JudgeAnswer.model_validate_json(
        text({"description": "Yes.", "confidence": "#", "scores": {"A": "#", "B": 7}})
    )
    assert (synthesis.confidence, synthesis.scores) == (None, {"B": 7})
    critique = CritiqueAnswer.model_validate_json(text({"issues": [{"issue": "Slow.", "severity": "#"}]}))
    assert [each.severity for each in critique.issues] == [None]
    ranking = Ranking.model_validate_json(
        text({"ranking": [{"agent": "A", "score": "#"}], "position": "#", "position_confidence": "#"})
    )
    assert ([each.score for each in ranking.ranking], ranking.position) == ([None], None)
    assert ranking.position_confidence == 0
    support = Support.model_validate_json(text({"proposals": [{"support": "#"}, {"support": 4}]}))
    assert support.mean == 4
    judged = Judgement.model_validate_json(text({"security": {"score": "#"}, "performance": 3}))
    assert judged.security.score in {None, 1, 10}
