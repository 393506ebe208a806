import json
from collections.abc import Callable, Mapping
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt.bounded_work import TooMuchWorkError
from parley.gateway.prompt.fit_schema import fit_value
from parley.gateway.prompt.structured_answers import InvalidAnswer, parse_shape
from tests.support.growth import check_growth

SCHEMA: dict[str, Any] = {
    "$defs": {
        "need": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "hard": {"type": "boolean"}},
            "required": ["text", "hard"],
            "additionalProperties": False,
        }
    },
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "openQuestions": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "needs": {"type": "array", "items": {"$ref": "#/$defs/need"}},
        "vote": {"type": "string", "enum": ["ada", "bo"]},
        "sure": {"type": "integer", "minimum": 0, "maximum": 100},
        "scores": {
            "type": "object",
            "properties": {each: {"type": "integer", "minimum": 0, "maximum": 10} for each in "AB"},
            "required": ["A", "B"],
            "additionalProperties": False,
        },
        "ratio": {"type": "number"},
    },
    "required": ["text", "openQuestions", "sure"],
    "additionalProperties": False,
}
WHOLE: dict[str, Any] = {"text": "x", "openQuestions": ["when?"], "sure": 80}


def fit(**fields: Any) -> Any:
    return fit_value({**WHOLE, **fields}, SCHEMA)


@pytest.mark.parametrize(
    ("field", "given_value", "meant"),
    [
        ("sure", "80", 80),
        ("sure", 80.4, 80),
        ("sure", 0.29, 29),
        ("sure", "0.85", 85),
        ("sure", 1.0, 100),
        ("sure", 1, 1),
        ("sure", "85%", 85),
        ("sure", "1%", 1),
        ("sure", "1.0%", 1),
        ("sure", "0.5/10", 5),
        ("sure", "~85 percent", 85),
        ("sure", "8/10", 80),
        ("sure", "8 out of 10", 80),
        ("sure", {"value": 70, "why": "it is so"}, 70),
        ("sure", [70], 70),
        ("sure", 150, 150),
        ("sure", "high", "high"),
        ("sure", True, True),
        ("scores", {"A": 8.5, "B": "7"}, {"A": 9, "B": 7}),
        ("scores", {"A": 8.5, "B": 1.0}, {"A": 9, "B": 1}),
        ("scores", {"A": 0.8, "B": 1}, {"A": 8, "B": 10}),
        ("scores", {"agent A": 8, "b": 7}, {"A": 8, "B": 7}),
        ("scores", [{"agent": "A", "score": 8}, {"agent": "agent B", "score": 7}], {"A": 8, "B": 7}),
        ("scores", {"A": {"score": 8, "why": "good"}, "B": {"score": 7}}, {"A": 8, "B": 7}),
        ("scores", '{"A": 8, "B": 7}', {"A": 8, "B": 7}),
        ("scores", {"A": 8}, {"A": 8}),
        ("scores", {"A": 8, "B": None}, {"A": 8}),
        ("text", ["one", "two"], "- one\n- two"),
        ("text", ["one"], "one"),
        ("text", {"why": "it is"}, "why: it is"),
        ("text", 3, "3"),
        ("text", None, ""),
        ("openQuestions", "when?", ["when?"]),
        ("openQuestions", "- when?\n- who,\n  and why?", ["when?", "who,\n  and why?"]),
        ("openQuestions", "1. when?\n2) who?", ["when?", "who?"]),
        ("openQuestions", "None.", []),
        ("openQuestions", None, []),
        ("openQuestions", '["when?"]', ["when?"]),
        ("openQuestions", [{"q": "when?"}, 3, None, " "], ["q: when?", "3"]),
        ("openQuestions", {"time": "when?"}, ["time: when?"]),
        ("openQuestions", list("abcd"), list("abc")),
        ("needs", {"text": "free", "hard": "yes"}, [{"text": "free", "hard": True}]),
        ("needs", [{"text": "free", "hard": 1, "more": 2}], [{"text": "free", "hard": True}]),
        ("vote", " Ada", "ada"),
        ("vote", ["BO"], "bo"),
        ("vote", "cy", "cy"),
        ("ratio", "0.5", 0.5),
    ],
)
def test_a_value_is_read_as_its_schema_means_it(field: str, given_value: Any, meant: Any) -> None:
    assert fit(**{field: given_value}) == {**WHOLE, field: meant}


@pytest.mark.parametrize(
    "value",
    [
        {**WHOLE, "more": 1},
        {"Text": "x", "open-questions": ["when?"], "SURE": 80},
        {"answer": WHOLE},
        [WHOLE],
        {"result": [{"answer": WHOLE}]},
    ],
)
def test_the_object_itself_is_found_and_keeps_only_its_own_keys(value: Any) -> None:
    assert fit_value(value, SCHEMA) == WHOLE


def test_a_text_of_another_name_is_the_one_that_is_missing_unless_there_are_two() -> None:
    properties = {**SCHEMA["properties"], "text": {"type": "string", "minLength": 1}}
    schema, rest = {**SCHEMA, "properties": properties}, {"openQuestions": ["when?"], "sure": 80}
    assert fit_value({"decision": "x", **rest}, schema) == WHOLE
    assert fit_value({"decision": "x", "comment": "y", **rest}, schema) == rest


def test_only_a_list_that_was_left_out_is_made_up() -> None:
    assert fit_value({}, SCHEMA) == {"openQuestions": []}


def test_keys_that_the_schema_allows_stay() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert fit_value({"a": 1, "b": 2}, schema) == {"a": "1", "b": 2}


def test_a_reference_to_itself_comes_to_an_end() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"$ref": "#/$defs/a"}},
    }
    assert fit_value({"a": 1}, schema) == {"a": 1}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
some = dict.fromkeys(SCHEMA["properties"], json_values)
valid = st.fixed_dictionaries(
    {
        "text": st.text(max_size=20),
        "openQuestions": st.lists(st.text(min_size=1, max_size=8).filter(str.strip), max_size=3),
        "sure": st.integers(0, 100),
    },
    optional={
        "needs": st.lists(
            st.fixed_dictionaries({"text": st.text(max_size=8), "hard": st.booleans()}), max_size=2
        ),
        "vote": st.sampled_from(["ada", "bo"]),
        "scores": st.fixed_dictionaries({"A": st.integers(0, 10), "B": st.integers(0, 10)}),
        "ratio": st.floats(allow_nan=False, allow_infinity=False),
    },
)


@given(valid)
def test_what_satisfies_the_schema_stays_as_it_is(value: dict[str, Any]) -> None:
    jsonschema.validate(value, SCHEMA)
    assert fit_value(value, SCHEMA) == value


@given(st.one_of(json_values, st.fixed_dictionaries({}, optional=some)))
def test_any_value_can_be_read_and_is_read_the_same_again(value: Any) -> None:
    before = json.dumps(value)
    once = fit_value(value, SCHEMA)
    assert json.dumps(value) == before
    if jsonschema.Draft202012Validator(SCHEMA).is_valid(once):
        assert fit_value(once, SCHEMA) == once


@given(st.lists(st.floats(0, 10) | st.integers(0, 10), min_size=2, max_size=2))
def test_scores_keep_their_order(scores: list[float]) -> None:
    read = fit(scores=dict(zip("AB", scores, strict=True)))["scores"]
    assert all(isinstance(each, int) and 0 <= each <= 10 for each in read.values())
    if scores[0] <= scores[1]:
        assert read["A"] <= read["B"]


@pytest.mark.parametrize(
    ("size", "value"),
    [
        (60_000, lambda size: {**WHOLE, "openQuestions": "- a\n" * size}),
        (262_144, lambda size: {**WHOLE, "openQuestions": "-" * size}),
        (262_144, lambda size: {**WHOLE, "sure": "1" * size}),
        (262_144, lambda size: {**WHOLE, "sure": " " * size}),
        (1000, lambda size: {**WHOLE, "text": [[["x"] * size] * 10] * 10}),
        (20_000, lambda size: {**WHOLE, "scores": [{"a": "B", "b": 1}] * size}),
        (30_000, lambda size: {f"k{number}": number for number in range(size)}),
        (200_000, lambda size: {"_" * size: 1}),
    ],
    ids=["many lines", "dashes", "digits", "blanks", "lists in lists", "scores", "many keys", "a long key"],
)
def test_no_value_takes_long(size: int, value: Callable[[int], Any]) -> None:
    check_growth(lambda size: fit_value(value(size), SCHEMA), size)


_WIDE: Mapping[str, Any] = {
    "type": "object",
    "properties": {f"p{n}": {"type": "integer"} for n in range(900)},
}
_LONG = "x" * 60_000


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ([{}] * 1000, {"type": "array", "items": _WIDE}),
        ([{"agent": f"P{n % 900}", "score": 1} for n in range(1000)], _WIDE),
        (
            [{}] * 50,
            {"type": "array", "items": {"type": "object", "properties": {}, "required": ["x"] * 9000}},
        ),
        (["x"] * 50, {"type": "array", "items": {"type": "string", "enum": ["y"] * 9000}}),
        (["x"] * 300, {"type": "array", "items": {"type": "string", "enum": [_LONG]}}),
        (
            [["x"]] * 300,
            {
                "type": "array",
                "items": {"type": "array", "items": {"$ref": f"#/$defs/{_LONG}"}},
                "$defs": {_LONG: {"type": "string"}},
            },
        ),
    ],
    ids=[
        "many properties",
        "entries of an object",
        "many that are required",
        "many options",
        "a long option",
        "a long reference",
    ],
)
def test_what_takes_too_long_to_be_read_is_given_up(value: Any, schema: Mapping[str, Any]) -> None:
    with pytest.raises(TooMuchWorkError, match="it takes too long"):
        fit_value(value, schema)


def test_an_answer_that_takes_too_long_to_be_read_does_not_satisfy() -> None:
    shape = parse_shape(
        "s", json.dumps({"type": "object", "properties": {"all": {"type": "array", "items": _WIDE}}})
    )
    with pytest.raises(InvalidAnswer, match="it takes too long"):
        shape.accept(json.dumps({"all": [{"p0": "1"}] * 1000}))


def test_a_large_answer_of_a_usual_kind_is_read() -> None:
    row = {"type": "object", "properties": {name: {"type": "integer"} for name in "abcdefgh"}}
    read = fit_value([dict.fromkeys("abcdefgh", "8")] * 2000, {"type": "array", "items": row})
    assert read == [dict.fromkeys("abcdefgh", 8)] * 2000
