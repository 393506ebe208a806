"""A schema that is right at a look is right for the library, too, and is not checked by it once more."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from parley.gateway.prompt.bounded_schema import SchemaCheck
from parley.gateway.prompt.plain_schema import are_plain

KEYWORDS = (
    *("additionalProperties", "description", "enum", "items", "maxItems", "maxLength", "maximum"),
    *("minItems", "minLength", "minimum", "properties", "required", "title", "type", "deprecated"),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from([0.5, 2.0, "object", "string", "integer", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=4,
)
"""None has a keyword in it."""


@given(st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=3))
def test_what_is_plain_is_right_for_the_library(schema: dict[str, Any]) -> None:
    if are_plain([schema]):
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "text"},
        {"type": ["string"]},
        {"properties": {"a": 1}},
        {"properties": []},
        {"items": []},
        {"additionalProperties": "no"},
        {"required": ["a", "a"]},
        {"required": [1]},
        {"required": "a"},
        {"enum": "a"},
        {"minItems": -1},
        {"maxItems": True},
        {"maxLength": 2.0},
        {"minLength": "1"},
        {"minimum": True},
        {"maximum": "1"},
        {"description": 1},
        {"title": None},
        {"format": "date"},
    ],
)
def test_whatever_else_is_left_to_the_library(wrong: dict[str, Any]) -> None:
    assert not are_plain([{"type": "object"}, wrong])


def test_the_library_is_not_asked_about_a_plain_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(Draft202012Validator, "check_schema", fail)
    properties = {
        "a": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 0, "maxItems": 3},
        "b": {"description": "How sure.", "type": "number", "minimum": 0, "maximum": 0.5},
        "c": {"enum": ["x", 1], "title": "One of two"},
    }
    schema = {"type": "object", "properties": properties, "required": ["a"], "additionalProperties": False}
    assert SchemaCheck(schema).find_error({"a": ["x"], "b": 0.25, "c": 1}) is None
    with pytest.raises(AssertionError, match="asked"):
        SchemaCheck({**schema, "minProperties": 1})
