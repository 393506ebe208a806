"""What a schema may be, and how much work an answer to it may make."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from parley.gateway.prompt.bounded_schema import SchemaCheck
from parley.gateway.prompt.structured_answers import InvalidAnswer, parse_shape

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _shape(**keywords: Any) -> Any:
    return parse_shape("s", json.dumps({"type": "object", **keywords}))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, "pattern is not checked here"),
        ({"patternProperties": {"^(a+)+$": {}}}, "patternProperties is not checked here"),
        ({"items": {"$dynamicRef": "#x"}}, r"\$dynamicRef is not checked here"),
        ({"items": {"$anchor": "x"}}, r"\$anchor is not checked here"),
        ({"unevaluatedProperties": False}, "unevaluatedProperties is not checked here"),
        ({"items": {"unevaluatedItems": False}}, "unevaluatedItems is not checked here"),
        ({"items": {"$schema": DIALECT}}, r"\$schema is not checked here"),
        ({"items": {"$id": "https://x.example/"}}, r"\$id is not checked here"),
        ({"anyOf": [{}] * 1000}, "has more than 1000 parts"),
        ({"not": json.loads('{"not": ' * 40 + "{}" + "}" * 40)}, "is nested more than 32 levels deep"),
        ({"default": json.loads("[" * 600 + "]" * 600)}, "is nested more than 32 levels deep"),
    ],
)
def test_a_schema_that_would_cost_much_is_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"json_schema: {message}"):
        _shape(**keywords)


@pytest.mark.parametrize(
    "reference", ["#/examples/0", "#/properties", "#/x", "#nowhere", "other.json", DIALECT]
)
def test_a_reference_leads_to_a_schema_that_was_looked_at(reference: str) -> None:
    """Not to what only looks like one: nobody has checked that it could be, or holds no pattern."""
    hidden = {"pattern": "^(a+)+$"}
    with pytest.raises(ValueError, match=r"json_schema: \$ref '.*' leads to no schema in it"):
        _shape(examples=[hidden], x=hidden, properties={"patternProperties": {}, "a": {"$ref": reference}})


def test_references_inside_of_a_schema_are_followed() -> None:
    shape = _shape(
        **{"$schema": DIALECT, "$id": "https://x.example/s", "$defs": {"a/b": {"type": "integer"}}},
        properties={"n": {"$ref": "#/$defs/a~1b"}, "other": {"$ref": "#"}, "yes": {"$ref": "#/$defs/a~1b"}},
    )
    assert shape.accept('{"other": {"n": 1}}')
    with pytest.raises(InvalidAnswer, match="is not of type 'integer'"):
        shape.accept('{"other": {"other": {"n": []}}}')


@pytest.mark.parametrize(
    "answer",
    [
        {"list": [{"n": 1}, {"n": "x"}]},
        {"list": [{"n": 1, "list": [{"n": 2, "list": [{"n": []}]}]}]},
        {"list": ["x", {"list": 1}]},
        {"pair": [1, "x", 2]},
        {"pair": [1], "n": "x"},
        {"never": 1},
        {"empty": [1]},
        {"any": {"n": "x"}},
        {"any": [{"k": 1}]},
    ],
)
def test_an_error_says_what_the_library_says_of_it_and_where(answer: dict[str, Any]) -> None:
    of_texts = {"type": "array", "items": {"properties": {"k": {"type": "string"}}}}
    schema = {
        "type": "object",
        "$defs": {"all": {"$ref": "#"}},
        "properties": {
            "n": {"type": "integer"},
            "list": {"type": "array", "items": {"$ref": "#/$defs/all", "required": ["n"]}},
            "pair": {"prefixItems": [{"type": "integer"}], "items": {"type": "integer"}},
            "never": False,
            "empty": {"items": False},
            "any": {"anyOf": [{"$ref": "#"}, of_texts]},
        },
    }
    expected = best_match(Draft202012Validator(schema).iter_errors(answer))
    found = SchemaCheck(schema).find_error(answer)
    assert expected is not None
    assert found is not None
    assert _describe(found) == _describe(expected)


def _describe(error: ValidationError) -> Any:
    described = (error.message, error.validator, error.json_path, list(error.absolute_schema_path))
    return described, [_describe(each) for each in error.context]


def test_what_a_property_is_called_and_what_is_data_is_no_keyword() -> None:
    shape = _shape(
        properties={"pattern": {"const": {"pattern": "x"}}, "properties": {"type": "string"}},
        required=["pattern"],
    )
    assert shape.accept('{"pattern": {"pattern": "x"}}') == '{"pattern": {"pattern": "x"}}'
    with pytest.raises(ValueError, match="pattern is not checked here"):
        _shape(properties={"properties": {"properties": {"a": {"pattern": "x"}}}})


def _make_doubling(levels: int, end: Any = None) -> dict[str, Any]:
    """References that lead to 2 ** `levels` checks of one value."""
    each = "allOf" if end else "anyOf"
    refer = {f"d{n}": {each: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    last = {f"d{levels}": end or {"type": "string"}}
    return {"$defs": {**refer, **last}, "properties": {"x": {"$ref": "#/$defs/d0"}, "whole": {"$ref": "#"}}}


NUMBERS = {"a": list(range(1000))}
MANY = {"$defs": {"c": {"anyOf": [{"type": "string"}] * 900}}}


@pytest.mark.parametrize(
    ("keywords", "answer"),
    [
        (_make_doubling(20), {"x": 1}),
        ({"$schema": DIALECT, **_make_doubling(20)}, {"whole": {"x": 1}}),
        (_make_doubling(11, {"const": NUMBERS}), {"x": NUMBERS}),
        (_make_doubling(11, {"uniqueItems": True}), {"x": [list(range(1000))]}),
        (_make_doubling(11, {"items": True}), {"x": [0] * 1000}),
        ({**MANY, "properties": {"x": {"anyOf": [{"$ref": "#/$defs/c"}] * 30}}}, {"x": {"a": "y" * 20_000}}),
        ({"properties": {"x": {"items": {"enum": list(range(1, 3000))}}}}, {"x": [0] * 100}),
        ({"properties": {"x": {"items": {"type": "integer"}}}}, {"x": [1] * 250_000}),
    ],
)
def test_a_check_that_would_take_long_is_given_up(keywords: dict[str, Any], answer: Any) -> None:
    with pytest.raises(InvalidAnswer, match="it takes too long to be checked against its schema"):
        _shape(**keywords).accept(json.dumps(answer))


@pytest.mark.parametrize(
    ("entries", "is_accepted"),
    [([{"k": n} for n in range(2000)], True), ([{"a": 1, "b": 2}, 3, {"b": 2, "a": 1}], False)],
)
def test_entries_are_unique_by_what_they_hold(entries: list[Any], is_accepted: bool) -> None:
    shape = _shape(properties={"x": {"type": "array", "uniqueItems": True}})
    if is_accepted:
        assert shape.accept(json.dumps({"x": entries}))
    else:
        with pytest.raises(InvalidAnswer, match="x: has an entry twice"):
            shape.accept(json.dumps({"x": entries}))


@pytest.mark.parametrize("keywords", [{"$ref": "#"}, {"not": {"$ref": "#"}}, {"allOf": [{"$ref": "#"}]}])
def test_a_schema_that_leads_back_to_itself_is_an_invalid_answer(keywords: dict[str, Any]) -> None:
    """However many calls stand around the check: the library panics if the interpreter stops it at some of its steps."""
    shape = _shape(**keywords)

    def accept_within(calls: int) -> None:
        if calls:
            accept_within(calls - 1)
        else:
            shape.accept("{}")

    for calls in range(10):
        with pytest.raises(InvalidAnswer, match="the schema cannot be applied: its references lead too deep"):
            accept_within(calls)


def test_an_answer_of_a_schema_that_leads_back_to_itself_may_have_64_levels() -> None:
    shape = _shape(properties={"o": {"allOf": [{"type": "object"}, {"$ref": "#"}]}})
    assert shape.accept('{"o": ' * 63 + "{}" + "}" * 63)
