"""What an evaluation comes to: averages of what was given, and the page that people read."""

from typing import Any

import pytest

from parley.orchestrator.api.answer import answer_markdown
from parley.orchestrator.formats.evaluation import V1
from parley.orchestrator.formats.evaluation.judgement import Judgement
from parley.orchestrator.formats.evaluation.outcome import outcome_of
from parley.v1.debate_pb2 import Debate
from parley.v1.evaluation_pb2 import (
    EVALUATION_DIMENSION_PERFORMANCE,
    EVALUATION_DIMENSION_SECURITY,
    FailedEvaluator,
)

ID = "deb-20260101-000000-aaaaaaaa"


def judgement(**given: Any) -> Judgement:
    return Judgement.model_validate(given)


def test_a_dimension_is_averaged_over_those_that_scored_it() -> None:
    first = judgement(security={"score": 8, "reason": "sealed"}, performance=4, strengths=["short"])
    second = judgement(security=5)
    evaluation = outcome_of(ID, {"ada": first, "bo": second}, ()).evaluation
    averages = [(each.dimension, each.average, each.evaluators) for each in evaluation.averages]
    assert averages == [(EVALUATION_DIMENSION_PERFORMANCE, 4.0, 1), (EVALUATION_DIMENSION_SECURITY, 6.5, 2)]
    assert evaluation.overall == pytest.approx((4 + 6.5) / 2)
    assert [each.overall for each in evaluation.evaluators] == [6.0, 5.0]
    assert [score.dimension for score in evaluation.evaluators[1].scores] == [EVALUATION_DIMENSION_SECURITY]


def test_an_evaluation_is_no_match_and_scores_nobody() -> None:
    assert not outcome_of(ID, {"ada": judgement(security=5)}, ()).scores
    assert not V1.is_recorded


def test_the_page_has_a_table_the_reasons_and_who_failed() -> None:
    given = judgement(security={"score": 8, "reason": "sealed"}, strengths=["short"], weaknesses=["dry"])
    failed = [FailedEvaluator(agent_id="cy", reason="PROVIDER_AUTH", message="no key")]
    page = answer_markdown(
        Debate(outcome=outcome_of(ID, {"ada": given, "bo": judgement(performance=3)}, failed)), V1
    )
    assert page.startswith(
        f"**5.5 of 10** for {ID}, by 2 evaluators, each by itself.\n\ncy gave no score: PROVIDER_AUTH.\n"
    )
    assert "| Dimension | ada | bo | Average |\n| --- | ---: | ---: | ---: |\n" in page
    assert "| Security | 8.0 | – | 8.0 |\n" in page  # noqa: RUF001
    assert "| Overall | 8.0 | 3.0 | 5.5 |\n" in page
    assert "## Reasons of ada\n\n- Security: sealed\n" in page
    assert "Reasons of bo" not in page
    assert "## Strengths\n\n- ada: short\n\n## Weaknesses\n\n- ada: dry\n" in page
