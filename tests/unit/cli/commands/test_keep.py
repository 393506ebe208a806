"""`parley delete`: who is asked, what is sent, and what is told."""

from pathlib import Path

import pytest

from parley.cli.__main__ import run
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedOrchestrator
from tests.support.terminal import on_terminal

VARIABLES = {"TERM": "dumb"}


def test_whoever_is_sure_is_not_asked(
    server: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["delete", "2026", "--yes", "--ratings", *server]) == 0
    (sent,) = orchestrator.deleted
    assert (sent.debate_id, sent.ratings) == (DEBATE_ID, True)
    assert capsys.readouterr().out == f"Deleted {DEBATE_ID}.\n"


def test_what_memory_still_holds_is_said(
    server: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.is_rated = False
    assert run(["delete", DEBATE_ID, "-y", *server]) == 0
    assert "they forget it when they are back" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "is_deleted"), [(b"yes\n", True), (b"no\n", False), (b"\n", False)])
def test_a_person_is_shown_the_question_and_asked(
    server: list[str], orchestrator: ScriptedOrchestrator, tmp_path: Path, answer: bytes, *, is_deleted: bool
) -> None:
    code, shown = on_terminal(["delete", DEBATE_ID, *server], tmp_path, VARIABLES, typed=answer)
    assert f"Delete {DEBATE_ID} for good? Which?" in shown
    assert (code, bool(orchestrator.deleted)) == ((0, True) if is_deleted else (1, False)), shown
    assert ("nothing was deleted" in shown) is not is_deleted
