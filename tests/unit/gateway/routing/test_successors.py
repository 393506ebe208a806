"""The model that is likely to take the place of one that an endpoint lists no more."""

import pytest

from parley.gateway.routing.successors import likely_successor


@pytest.mark.parametrize(
    ("model", "listed", "expected"),
    [
        ("gpt-5-mini", ["gpt-6", "gpt-5.5-mini", "gpt-6-mini", "gpt-6-nano"], "gpt-6-mini"),
        ("gpt-5-mini", ["gpt-10-mini", "gpt-9.2-mini"], "gpt-10-mini"),
        ("gpt-5-mini", ["gpt-5-mini-2026-08-07", "gpt-4-mini"], "gpt-5-mini-2026-08-07"),
        ("gpt-5-mini", ["gpt-6-mini-2027-01-01", "gpt-6-mini"], "gpt-6-mini"),
        ("openai/gpt-5-mini", ["gpt-6-mini", "openai/gpt-6-mini"], "openai/gpt-6-mini"),
        ("gpt-5-mini", ["text-embedding-3-large", "o9-mini"], ""),
        ("gpt-5-mini", [], ""),
    ],
)
def test_it_has_the_same_words_and_the_highest_version(model: str, listed: list[str], expected: str) -> None:
    assert likely_successor(model, listed) == expected
