"""Points and letters as models name them, and quotes of points."""

import pytest

from parley.orchestrator.formats.moderated.points import Point, parse_letter, quote_from


@pytest.mark.parametrize(
    ("given", "letter"),
    [
        ("B", "B"),
        (" b ", "B"),
        ("agent B", "B"),
        ("Agent b (Security Advocate)", "B"),
        ("B.", "B"),
        ("AA", "AA"),
        ("", ""),
        ("Security Advocate", ""),
        ("nobody", ""),
    ],
)
def test_an_agent_may_be_named_with_more_than_its_letter(given: str, letter: str) -> None:
    assert parse_letter(given) == letter


def test_a_long_quote_is_cut_with_a_mark() -> None:
    text = "word " * 100
    quoted = quote_from(Point("B.1", "key", 1, "bo", text), text)
    assert quoted == f"{text[:300]}…"
