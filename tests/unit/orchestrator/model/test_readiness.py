"""Readiness: the line in which an agent says it is read leniently, and others never read it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.readiness import Readiness, parse_readiness, without_readiness


@pytest.mark.parametrize(
    ("line", "readiness"),
    [
        ("Ready: yes, 85 %", Readiness(True, 0.85)),
        ("Ready: no, 40%", Readiness(False, 0.4)),
        ("**Ready:** Yes, 92,5 %.", Readiness(True, 0.925)),
        ("4. Ready: no, 40 %", Readiness(False, 0.4)),
        ("- ready: YES", Readiness(True, None)),
        ("Ready: 70 %", Readiness(None, 0.7)),
        ("Ready: yes and no, 50 %", Readiness(None, 0.5)),
        ("Ready: yes, 50 % to 60 %", Readiness(True, None)),
        ("Ready: yes, 850 %", Readiness(True, None)),
        ("Ready: yes, -20 %", Readiness(True, None)),
        ("We are ready: yes, 90 %", Readiness()),
        ("Ready or not, 90 %", Readiness()),
        ("", Readiness()),
    ],
)
def test_what_is_said_counts_and_what_makes_no_sense_is_absent(line: str, readiness: Readiness) -> None:
    assert parse_readiness(f"Use a queue.\nPosition: a queue\n{line}") == readiness


def test_the_last_line_counts_and_is_taken_off() -> None:
    text = "Ready: no, 10 %\nUse a queue.\nPosition: a queue\nReady: yes, 90 %\n"
    assert parse_readiness(text) == Readiness(True, 0.9)
    assert without_readiness(text) == "Ready: no, 10 %\nUse a queue.\nPosition: a queue"


@given(st.text())
def test_a_text_without_such_a_line_stays_as_it_is(text: str) -> None:
    if "ready" not in text.lower():
        assert without_readiness(text) == text
        assert parse_readiness(text) == Readiness()
