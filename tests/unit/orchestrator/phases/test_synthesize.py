"""How a judge's answer is read: whatever is there counts, and nothing is made up."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from parley.orchestrator.model.tasks import AnswerShape
from parley.orchestrator.phases.synthesize import JudgeAnswer, ProseAnswer, answer_from_prose

LENIENT = AnswerShape("s", JudgeAnswer, "{}", lambda answer: answer.description, answer_from_prose)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
some = dict.fromkeys(JudgeAnswer.model_fields, json_values)


@given(st.fixed_dictionaries({}, optional=some))
def test_an_answer_with_a_description_is_read_whatever_the_rest_is(value: dict[str, Any]) -> None:
    value = {**value, "description": "Use one."}
    answer = LENIENT.parse(json.dumps(value))
    assert (answer.description, type(answer)) == ("Use one.", JudgeAnswer)
    for letter, score in answer.scores.items():
        assert score == value["scores"][letter]
        assert math.isfinite(score)
        assert 0 <= score <= 10
    assert answer.confidence is None or 0 <= answer.confidence <= 100


@given(st.one_of(st.text(max_size=60), json_values.map(json.dumps)))
def test_a_text_is_an_answer_or_none_and_always_the_same(text: str) -> None:
    try:
        answer = LENIENT.parse(text)
    except ValidationError:
        return
    assert answer.description.strip()
    assert LENIENT.parse(text) == answer


def test_what_is_absent_is_not_made_up() -> None:
    answer = LENIENT.parse('{"description": "Use one.", "scores": {"A": 11, "B": "good", "C": 7, "D": true}}')
    assert (answer.confidence, answer.scores) == (None, {"C": 7})


def test_a_requirement_is_a_must_only_if_the_judge_says_so() -> None:
    unmet = ["free", {"text": "small", "hard": True}, {"text": "fast"}]
    answer = LENIENT.parse(json.dumps({"description": "Use one.", "unfulfilled_requirements": unmet}))
    assert [(each.text, each.hard) for each in answer.unfulfilled_requirements] == [
        ("free", False),
        ("small", True),
        ("fast", False),
    ]


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("Use one.", "Use one."),
        ("42", "42"),
        ('{"answer": "Use one.", "confidence": 80}', "answer: Use one."),
        ('{"steps": ["one", "two"], "n": 3}', "steps: - one\n- two"),
        ('["Use one."]', "- Use one."),
        ("[" * 100_000, "[" * 100_000),
        ("[" * 900 + "]" * 900 + " so", "[" * 900 + "]" * 900 + " so"),
    ],
)
def test_prose_has_no_confidence_and_no_scores(text: str, description: str) -> None:
    assert LENIENT.parse(text) == ProseAnswer(description=description)


@pytest.mark.parametrize("text", ["", " \n", "{}", "[]", '{"description": ""}', '{"confidence": 80}'])
def test_a_text_without_words_is_no_answer(text: str) -> None:
    with pytest.raises(ValidationError):
        LENIENT.parse(text)


def test_a_shape_that_takes_no_prose_reads_none() -> None:
    with pytest.raises(ValidationError):
        AnswerShape("s", JudgeAnswer, "{}", lambda answer: answer.description).parse("Use one.")
