"""What scores mean is said in words, and models are asked with schemas that hold nothing but what to answer."""

import json
from typing import Annotated

from pydantic import BaseModel, Field

from parley.orchestrator.phases import critique, requirements
from parley.orchestrator.phases.schemas import prompt_schema
from parley.orchestrator.phases.scoring import score_anchors, scores_schema


class Inner(BaseModel):
    """For programmers."""

    description: Annotated[str, Field(description="Told.")]
    title: str


class Outer(BaseModel):
    """For programmers too."""

    inner: list[Inner]
    one: Annotated[Inner, Field(description="The one.")]


def test_the_same_words_stand_at_ten_times_the_number_out_of_a_hundred() -> None:
    ten, hundred = (score_anchors(best).splitlines() for best in (10, 100))
    anchors = [line.partition(": ") for line in ten if line.startswith("- ")]
    assert [line.partition(": ")[2] for line in hundred if line.startswith("- ")] == [
        each[2] for each in anchors
    ]
    assert [each[0] for each in anchors] == ["- 10", "- 7", "- 5", "- 3", "- 0"]
    assert "- 70: " in "\n".join(hundred)


def test_scores_are_asked_for_by_letter_and_none_may_be_missing() -> None:
    schema = scores_schema(["A", "B"], 10)
    assert schema["required"] == ["A", "B"]
    assert schema["properties"]["A"] == {"type": "integer", "minimum": 0, "maximum": 10}


def test_a_schema_has_no_titles_no_docstrings_and_no_references() -> None:
    inner = {
        "type": "object",
        "properties": {
            "description": {"type": "string", "description": "Told."},
            "title": {"type": "string"},
        },
        "required": ["description", "title"],
    }
    assert prompt_schema(Outer) == {
        "type": "object",
        "properties": {
            "inner": {"type": "array", "items": inner},
            "one": {**inner, "description": "The one."},
        },
        "required": ["inner", "one"],
    }


def test_what_the_phases_ask_with_is_short() -> None:
    for text in (critique._SCHEMA, requirements._SCHEMA):
        assert len(text) < 800
        assert not {"title", "$defs"} & json.loads(text).keys()
