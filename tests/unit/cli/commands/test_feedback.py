"""`parley feedback`: what is sent, and what is told."""

import json

import pytest

from parley.cli.__main__ import run
from parley.cli.terminal.debate_overview import feedback_text
from parley.runtime.errors import FieldViolation, ParleyError, failed_precondition, invalid_argument
from parley.v1.debate_pb2 import Feedback
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedOrchestrator


def test_a_word_is_sent_and_what_is_recorded_is_told(
    server: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["feedback", DEBATE_ID, "up", "-m", "it helped", *server]) == 0
    (sent,) = orchestrator.feedback
    assert (sent.debate_id, sent.value, sent.message) == (DEBATE_ID, 1, "it helped")
    assert capsys.readouterr().out == f"Recorded for {DEBATE_ID}: up: it helped (counted for ada, bo)\n"


def test_the_beginning_of_an_id_is_enough_and_ratings_that_are_away_are_said(
    server: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.is_rated = False
    assert run(["feedback", "2026", "down", *server]) == 0
    assert orchestrator.feedback[0].value == -1
    assert capsys.readouterr().out == f"Recorded for {DEBATE_ID}: down (still to be counted for ada, bo)\n"


def test_it_is_json_too(server: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["feedback", DEBATE_ID, "down", "--json", *server]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["debate_id"], found["value"], found["rated"]) == (DEBATE_ID, -1, True)
    assert found["agent_ids"] == ["ada", "bo"]


@pytest.mark.parametrize(
    ("refusal", "code", "told"),
    [
        (failed_precondition("DEBATE_NOT_COMPLETED", "debate d is failed; only a completed one takes feedback"), 1,
         "debate d is failed; only a completed one takes feedback"),
        (invalid_argument([FieldViolation("message", "must be at most 8 KiB")]), 2, "--message: must be at most 8 KiB"),
    ],
    ids=["not completed", "too long"],
)  # fmt: skip
def test_a_refusal_is_one_line_and_a_code(
    refusal: ParleyError,
    code: int,
    told: str,
    server: list[str],
    orchestrator: ScriptedOrchestrator,
    capsys: pytest.CaptureFixture[str],
) -> None:
    orchestrator.feedback_refusal = lambda request: refusal
    assert run(["feedback", DEBATE_ID, "up", *server]) == code
    assert capsys.readouterr().err == f"parley: {told}\n"


def test_a_word_is_up_or_down(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["feedback", DEBATE_ID, "great"]) == 2
    assert "'great' is not one of 'up', 'down'" in capsys.readouterr().err


def test_feedback_on_what_is_not_rated_says_why_it_counts_for_nobody() -> None:
    assert feedback_text(Feedback(value=1)) == (
        "up (counted for no rating: demonstrations and evaluations are not rated)"
    )
