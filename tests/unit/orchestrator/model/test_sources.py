"""Sources in words, outside of the debate that numbers them."""

import pytest

from parley.orchestrator.model.sources import name_sources

PLACES = ("docs/load.md", "https://example.org/b")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("It is quick [S1].", "It is quick (docs/load.md)."),
        ("It is quick [S1, S2].", "It is quick (docs/load.md, https://example.org/b)."),
        ("It is quick [S2,S9].", "It is quick (https://example.org/b)."),
        ("It is quick [S0][S3].", "It is quick."),
        ("[S1] says so, [1] and S1 stay.", "(docs/load.md) says so, [1] and S1 stay."),
    ],
)
def test_the_number_of_a_source_becomes_its_place(text: str, named: str) -> None:
    assert name_sources(text, PLACES) == named
