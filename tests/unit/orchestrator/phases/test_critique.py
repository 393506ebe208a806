"""How a critique is read: whatever is there counts, and nothing is made up."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from parley.orchestrator.model.critiques import render_critique
from parley.orchestrator.model.tasks import AnswerShape
from parley.orchestrator.phases.critique import CritiqueAnswer, critique_from_prose
from parley.v1.critique_pb2 import Critique, Issue

SHAPE = AnswerShape(
    "c", CritiqueAnswer, "{}", lambda answer: render_critique(answer.to_proto(), "B"), critique_from_prose
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def read(value: Any) -> Critique:
    return SHAPE.parse(value if isinstance(value, str) else json.dumps(value)).to_proto()


def test_a_critique_is_kept_as_data_and_its_issues_are_numbered() -> None:
    issues = [
        {"issue": "No rollback.", "severity": 8, "suggestion": "Add one."},
        {"issue": "Vague.", "severity": 2, "suggestion": ""},
    ]
    assert read({"issues": issues, "agrees": False, "remarks": "Clear otherwise."}) == Critique(
        issues=[
            Issue(number=1, text="No rollback.", severity=8, suggestion="Add one."),
            Issue(number=2, text="Vague.", severity=2),
        ],
        agrees=False,
        remarks="Clear otherwise.",
    )


def test_a_critic_that_sees_nothing_wrong_names_no_issue_and_agrees() -> None:
    critique = read({"issues": [], "agrees": True, "remarks": ""})
    assert (len(critique.issues), critique.agrees) == (0, True)
    assert render_critique(critique, "B") == "Agent B agrees with the proposal as it stands."


@pytest.mark.parametrize(
    ("given", "severity"),
    [(7.5, 8), (0, 0), (11, None), (-1, None), ("high", None), (True, None), (None, None)],
)
def test_a_severity_that_makes_no_sense_is_absent(given: Any, severity: int | None) -> None:
    (issue,) = read({"issues": [{"issue": "x", "severity": given}], "agrees": False}).issues
    assert (issue.severity if issue.HasField("severity") else None) == severity


def test_an_issue_may_be_a_text_alone_and_one_without_words_is_none() -> None:
    issues = ["No rollback.", {"severity": 9}, "", {"text": "Vague.", "suggestion": 3}]
    assert [each.text for each in read({"issues": issues, "agrees": False}).issues] == [
        "No rollback.",
        "Vague.",
    ]


@pytest.mark.parametrize(
    ("given", "issues"),
    [([{"issue": "x"}, "y"], ["x", "y"]), ({"issue": "x", "agrees": False}, ["x"])],
    ids=["a list alone", "one issue alone"],
)
def test_issues_without_the_form_around_them_are_read(given: Any, issues: list[str]) -> None:
    assert [each.text for each in read(given).issues] == issues


@pytest.mark.parametrize(
    "text", ["Step 3 has no rollback.", "It will do.\n\n- but slowly", '{"verdict": "too slow"}']
)
def test_prose_is_a_critique_without_issues_and_nobody_says_that_it_agrees(text: str) -> None:
    critique = read(text)
    assert not critique.issues
    assert not critique.HasField("agrees")
    assert critique.remarks in {text, "verdict: too slow"}


@pytest.mark.parametrize("agrees", ["yes", 1, None, "perhaps"])
def test_agreement_is_never_made_up(agrees: Any) -> None:
    assert not read({"issues": ["x"], "agrees": agrees}).HasField("agrees")


@pytest.mark.parametrize("text", ["", " \n", "{}", "[]", '{"agrees": null}', '{"n": 1}'])
def test_a_text_without_words_is_no_critique(text: str) -> None:
    with pytest.raises(ValidationError):
        read(text)


@given(st.one_of(st.text(max_size=60), json_values.map(json.dumps)))
def test_a_text_is_a_critique_or_none_and_always_the_same(text: str) -> None:
    try:
        critique = read(text)
    except ValidationError:
        return
    assert read(text) == critique
    assert render_critique(critique, "B").strip()


def test_people_and_agents_read_issues_by_the_critics_letter() -> None:
    critique = Critique(
        issues=[
            Issue(number=1, text="No rollback.", severity=8, suggestion="Add one."),
            Issue(number=2, text="Vague."),
        ],
        agrees=False,
    )
    assert render_critique(critique, "B") == (
        "**Issue B.1** (severity 8 of 10): No rollback.\n\nSuggestion: Add one.\n\n"
        "**Issue B.2** (severity not said): Vague.\n\n"
        "Agent B does not agree with the proposal as it stands."
    )
