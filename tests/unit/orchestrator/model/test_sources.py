"""Sources in words, outside of the debate that numbers them."""

import pytest

from parley.orchestrator.model.sources import describe_place, name_sources
from parley.v1.source_pb2 import Source

SOURCES = (
    Source(number=1, path="docs/load.md"),
    Source(number=2, title="The\ndam [S9]", url="https://example.org/b"),
)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("It is quick [S1].", "It is quick (docs/load.md)."),
        ("It is quick [S1, S2].", "It is quick (docs/load.md; The dam (S9))."),
        ("It is safe [S2 and S1].", "It is safe (The dam (S9); docs/load.md)."),
        ("It is quick [S2;S9].", "It is quick (The dam (S9))."),
        ("It is quick [S0][S3].", "It is quick."),
        ("[S1] says so, [1] and S1 stay.", "(docs/load.md) says so, [1] and S1 stay."),
        ("A link stays: [S1](https://store.example).", "A link stays: [S1](https://store.example)."),
    ],
)
def test_the_number_of_a_source_becomes_its_name(text: str, named: str) -> None:
    assert name_sources(text, SOURCES) == named


def test_a_source_is_looked_up_by_its_title_and_its_place() -> None:
    assert [describe_place(each) for each in SOURCES] == [
        "docs/load.md",
        "The dam (S9) (https://example.org/b)",
    ]


def test_the_name_of_a_source_is_bounded() -> None:
    source = Source(number=1, title="long " * 1_000, url=f"https://example.org/{'a' * 2_000}")
    assert len(name_sources("[S1]", [source])) <= 122
    assert len(describe_place(source)) <= 600
