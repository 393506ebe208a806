"""JSON of documents: values of every type that a store keeps, and texts as they are."""

import json
from enum import IntEnum, StrEnum
from types import MappingProxyType

import numpy as np
import pytest

from parley.storage.json_text import to_json
from parley.storage.ports import Value


class Color(StrEnum):
    RED = "red"


class Size(IntEnum):
    LARGE = 3


class Word(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (Color.RED, "red"),
        (Size.LARGE, 3),
        (Word("word"), "word"),
        (np.float64(0.25), 0.25),
        ((1, 2), [1, 2]),
        (range(2), [0, 1]),
        (MappingProxyType({Word("name"): Color.RED}), {"name": "red"}),
    ],
)
def test_a_value_is_written_as_the_plain_one_that_it_is(value: Value, kept: object) -> None:
    found = json.loads(to_json(value))
    assert found == kept
    assert type(found) is type(kept)


def test_plain_values_are_read_back_as_they_were_written() -> None:
    values: Value = [
        "€ \n\x01\x7f\u2028\U0001f600",
        1e300,
        5e-324,
        1e16,
        -0.0,
        2**63 - 1,
        -(2**63),
        True,
        None,
    ]
    assert json.loads(to_json(values)) == values


def test_text_is_written_as_it_is_and_without_spaces() -> None:
    assert to_json({"é": ["ß", 1]}) == '{"é":["ß",1]}'.encode()
