import enum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tests.support.model_server.schema_instance import UnsupportedSchemaError, instance


class Verdict(enum.Enum):
    AGREE = "agree"
    DISAGREE = "disagree"


class Criticism(BaseModel):
    target: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")
    severity: int = Field(ge=1, le=5)
    verdict: Verdict
    replies: "list[Criticism]" = Field(default=[], max_length=3)


class Judgement(BaseModel):
    kind: Literal["judgement"]
    scores: dict[str, Annotated[float, Field(gt=0, lt=1)]]
    criticisms: Annotated[list[Criticism], Field(min_length=3)]
    winner: str | None
    note: Annotated[str, Field(min_length=40, max_length=60)] | Criticism


@given(st.integers(0, 2**64))
def test_models_of_pydantic_accept_what_is_made_up_for_them(seed: int) -> None:
    schema = Judgement.model_json_schema()
    made = instance(schema, seed)
    assert made == instance(schema, seed)
    judgement = Judgement.model_validate(made)
    assert len(judgement.criticisms) >= 3
    assert judgement.scores


def _numbers(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(st.integers(-50, 50), st.integers(2, 50), st.booleans(), st.booleans()).map(
        lambda drawn: {
            "type": kind,
            ("exclusiveMinimum" if drawn[2] else "minimum"): drawn[0],
            ("exclusiveMaximum" if drawn[3] else "maximum"): drawn[0] + drawn[1],
        }
    )


def _open_numbers(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"])
    return st.tuples(bounds, st.integers(-50, 50)).map(lambda drawn: {"type": kind, drawn[0]: drawn[1]})


_LEAVES = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({"type": ["string", "null"]}),
    _numbers("integer"),
    _numbers("number"),
    _open_numbers("integer"),
    _open_numbers("number"),
    st.integers(1, 7).map(lambda step: {"type": "integer", "multipleOf": step, "minimum": step}),
    st.tuples(st.integers(0, 80), st.integers(0, 20)).map(
        lambda drawn: {"type": "string", "minLength": drawn[0], "maxLength": drawn[0] + drawn[1]}
    ),
    st.lists(st.one_of(st.text(), st.integers(), st.none()), min_size=1).map(lambda values: {"enum": values}),
    st.one_of(st.text(), st.integers()).map(lambda value: {"const": value}),
)


def _compose(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    arrays = st.tuples(parts, st.integers(0, 3), st.integers(0, 3)).map(
        lambda drawn: {
            "type": "array",
            "items": drawn[0],
            "minItems": drawn[1],
            "maxItems": drawn[1] + drawn[2],
        }
    )
    objects = st.tuples(st.dictionaries(st.text(max_size=5), parts, max_size=4), st.booleans()).map(
        lambda drawn: {
            "type": "object",
            "properties": drawn[0],
            "required": list(drawn[0]) if drawn[1] else [],
            "additionalProperties": False,
        }
    )
    choices = st.lists(parts, min_size=1, max_size=3).map(lambda drawn: {"anyOf": drawn})
    return st.one_of(arrays, objects, choices)


@given(st.recursive(_LEAVES, _compose, max_leaves=8), st.integers(0, 2**64))
def test_an_instance_is_valid(schema: dict[str, Any], seed: int) -> None:
    jsonschema.Draft202012Validator(schema).validate(instance(schema, seed))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[0-9]{40}$"},
        {"$ref": "#/$defs/missing"},
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"type": "array", "items": {"const": 1}, "minItems": 2, "uniqueItems": True},
        {"type": "object", "properties": {"self": {"$ref": "#"}}, "required": ["self"]},
        {"$ref": "#"},
    ],
)
def test_what_cannot_be_made_up_is_said_and_never_wrong(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedSchemaError):
        instance(schema, 1)
