"""Positions found in texts."""

import pytest

from parley.orchestrator.model.positions import position_of
from tests.support.growth import check_growth


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("So be it.\nPosition: Water is wet.", "Water is wet."),
        ("2. Position: Water is wet.", "Water is wet."),
        ("**2) Position:** Water is wet.", "Water is wet."),
        ("**Position:** Water is wet.", "Water is wet."),
        ("**Position: Water is wet.**\n", "Water is wet."),
        ("> POSITION : Water is wet.  ", "Water is wet."),
        ("- position: no\nmore\nPosition: yes", "yes"),
        ("Position: yes\r\n", "yes"),
        ("Position: Water is wet [S1] [S12].", "Water is wet."),
        ("Position:\n\nelsewhere", ""),
        ("Position: yes\nPosition:   ", "yes"),
        ("My position: unclear", ""),
        ("", ""),
    ],
)
def test_the_last_stated_position_counts(text: str, position: str) -> None:
    assert position_of(text) == position


def test_a_position_is_cut_to_500_characters() -> None:
    assert len(position_of("Position: " + "x" * 900)) == 500


def test_a_model_that_writes_blanks_for_ever_blocks_nobody() -> None:
    def read(blanks: int) -> None:
        assert position_of("Position: a" + " " * blanks + "b") != ""
        assert position_of("Position:" + "*_ " * (blanks // 2)) == ""

    check_growth(read, 200_000)
