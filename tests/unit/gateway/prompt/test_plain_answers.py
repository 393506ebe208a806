"""An answer that fills its form just as it stands is taken without being read otherwise, and no other one is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt.bounded_schema import SchemaCheck
from parley.gateway.prompt.fit_schema import fit_value
from parley.gateway.prompt.plain_answers import fills_form
from parley.gateway.prompt.structured_answers import parse_shape

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1, "maxLength": 5, "description": "What it says."},
        "vote": {"type": "string", "enum": ["yes", "no", "perhaps"], "minLength": 3},
        "sure": {"type": "integer", "minimum": 0, "maximum": 100},
        "agrees": {"type": "boolean"},
        "points": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "scores": {
            "type": "object",
            "properties": {"A": {"type": "integer"}, "type": {"type": "string"}},
            "required": ["A"],
            "additionalProperties": False,
        },
    },
    "required": ["text", "sure"],
}
CHECK = SchemaCheck(SCHEMA)
WHOLE = {"text": "Yes.", "sure": 80}
MORE = {"vote": "yes", "agrees": True, "points": ["one", " two\n"], "scores": {"A": 7, "type": "score"}}

odd_values = st.none() | st.booleans() | st.integers(-2, 120) | st.floats(0, 1) | st.text(max_size=6)
values = st.recursive(
    odd_values | st.sampled_from(["yes", "no", " no", "Yes", "object"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["A", "type", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)
answers = st.fixed_dictionaries(
    {"text": st.sampled_from(["Yes.", "…", ""]) | values, "sure": st.integers(-1, 101) | values},
    optional={**dict.fromkeys(("vote", "agrees", "points", "scores", "other"), values)},
)


@given(answers)
def test_what_fills_its_form_is_left_as_it_is_and_satisfies_its_schema(answer: dict[str, Any]) -> None:
    if fills_form(answer, SCHEMA):
        assert json.dumps(fit_value(answer, SCHEMA)) == json.dumps(answer)
        assert CHECK.find_error(answer) is None


@pytest.mark.parametrize("answer", [WHOLE, WHOLE | MORE, {"sure": 0, "text": "a"}])
def test_an_answer_as_nearly_all_are_is_taken_without_a_look_at_what_it_may_mean(
    answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.gateway.prompt.structured_answers.fit_value", pytest.fail)
    monkeypatch.setattr(SchemaCheck, "find_error", pytest.fail)
    shape = parse_shape("form", json.dumps(SCHEMA))
    assert shape.accept_at_once(json.dumps(answer)) == json.dumps(answer)


@pytest.mark.parametrize(
    "odd",
    [
        {"text": ""},
        {"text": "…"},
        {"text": "longer"},
        {"text": None},
        {"sure": 101},
        {"sure": -1},
        {"sure": True},
        {"sure": 0.5},
        {"sure": "80"},
        {"vote": "Yes"},
        {"vote": "never"},
        {"vote": "no"},
        {"agrees": 1},
        {"points": []},
        {"points": ["one", "two", "three"]},
        {"points": ["one", " "]},
        {"points": ["one", 2]},
        {"points": "one"},
        {"scores": {}},
        {"scores": {"A": 7, "B": 7}},
        {"scores": {"A": 7, "type": "object"}},
        {"scores": [7]},
        {"other": 1},
    ],
)
def test_an_answer_that_is_not_quite_so_is_looked_at(odd: dict[str, Any]) -> None:
    assert not fills_form({**WHOLE, **odd}, SCHEMA)
    assert not fills_form({"text": "Yes."}, SCHEMA)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (1, {"type": "integer", "multipleOf": 2}),
        (1, {"type": ["integer", "null"]}),
        (1, {"$ref": "#/$defs/number"}),
        (1, True),
        ([1], {"type": "array"}),
        (" yes", {"type": "string", "enum": [" yes", "yes"]}),
        ("1", {"type": "string", "enum": [str(number) for number in range(100)]}),
    ],
)
def test_a_form_that_says_more_is_looked_at(value: Any, schema: Any) -> None:
    assert not fills_form(value, schema)
