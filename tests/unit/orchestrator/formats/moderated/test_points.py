"""Points, letters and positions as models write them, and quotes of points."""

import pytest

from parley.orchestrator.formats.moderated.argue import Argument
from parley.orchestrator.formats.moderated.points import Point, parse_letter, quote_from
from parley.orchestrator.formats.moderated.rebut import Rebuttal


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


@pytest.mark.parametrize("kind", [Argument, Rebuttal])
def test_a_position_is_read_as_one_line_of_500_characters_at_most(kind: type[Argument | Rebuttal]) -> None:
    long = f"Build it. {'x' * 500}"
    assert kind.model_validate({"position": f" {long.replace(' ', chr(10))}"}).position == long[:500]
