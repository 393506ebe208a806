"""Commands on a terminal: what is styled, what is plain, and what fits."""

import re
from pathlib import Path

import pytest

from parley.v1.debate_pb2 import DraftGroup
from parley.v1.event_pb2 import PhaseFinished, PhaseStarted, RoundStarted
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator
from tests.support.terminal import on_terminal

STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOR = re.compile(r"\x1b\[[0-9;]*(3[0-7]|9[0-7])m")
REMARK = "2 of 3 first drafts agree (ada, bo) · scores: ada 8, bo 7.5 · m · 1 call ·"


def decide(debate: ScriptedDebate) -> None:
    drafts = debate.state.first_drafts
    drafts.groups.extend([DraftGroup(agent_ids=["ada", "bo"]), DraftGroup(agent_ids=["cy"])])
    drafts.majority = drafts.certain = True
    debate.add(RoundStarted(number=1, total=1))
    debate.add(PhaseStarted(activity="proposal", round=1, expected=1))
    debate.step("ada", "proposal", "Use **one**:\n\n- fast")
    debate.add(PhaseFinished(activity="proposal", round=1))
    debate.conclude("Use **one**, see <b>.\n\n## Trade-offs\n\n- slow", ada=8, bo=7.5)


@pytest.fixture
def address(orchestrator: ScriptedOrchestrator) -> str:
    orchestrator.script = decide
    return orchestrator.address


def test_the_answer_is_rendered_and_followed_by_what_it_took(address: str, tmp_path: Path) -> None:
    code, shown = on_terminal(["debate", "Which?", "--server", address], tmp_path, {"TERM": "xterm-256color"})
    assert code == 0, shown
    answer = shown.partition("parley show")[2].split("\n", 1)[1]
    assert COLOR.search(answer)
    plain = STYLE.sub("", answer)
    assert "Use one, see <b>." in plain
    assert "\nTrade-offs" in plain
    assert "• slow" in plain
    assert f"Confidence: 72 of 100 {REMARK}" in " ".join(plain.split())
    assert all(len(line) <= 80 for line in plain.splitlines())


def test_no_color_leaves_colors_out(address: str, tmp_path: Path) -> None:
    variables = {"TERM": "xterm-256color", "NO_COLOR": "1"}
    code, shown = on_terminal(["debate", "Which?", "--server", address], tmp_path, variables)
    assert code == 0, shown
    assert "• slow" in STYLE.sub("", shown)
    assert not COLOR.search(shown)


def test_a_terminal_that_knows_only_lines_gets_lines(address: str, tmp_path: Path) -> None:
    code, shown = on_terminal(["debate", "Which?", "--server", address], tmp_path, {"TERM": "dumb"})
    assert code == 0, shown
    assert "\x1b" not in shown
    assert "\n  proposal: 1/1\n" in shown
    assert "## Trade-offs\n\n- slow\n\nConfidence: 72 of 100\n\n" + REMARK in shown


def test_a_question_is_typed_and_the_list_fits(address: str, tmp_path: Path) -> None:
    variables = {"TERM": "xterm"}
    code, shown = on_terminal(
        ["debate", "-", "--server", address], tmp_path, variables, typed=b"Which one?\n\x04"
    )
    assert code == 0, shown
    assert "Ctrl-D" in shown
    code, shown = on_terminal(["debate", "--server", address], tmp_path, variables)
    assert (code, shown) == (
        2,
        "parley: give a question, or a file with --problem-description FILE\n",
    )
    code, shown = on_terminal(["list", "--server", address], tmp_path, variables, columns=60)
    assert code == 0
    assert all(len(line) <= 60 for line in shown.splitlines())
    code, shown = on_terminal(["show", DEBATE_ID[:12], "--server", address], tmp_path, variables)
    assert code == 0
    assert "• slow" in STYLE.sub("", shown)


def test_a_watch_renders_each_contribution_where_it_was_made(address: str, tmp_path: Path) -> None:
    variables = {"TERM": "xterm-256color"}
    on_terminal(["debate", "Which?", "--server", address], tmp_path, variables)
    code, shown = on_terminal(["watch", DEBATE_ID, "--server", address], tmp_path, variables, columns=40)
    assert code == 0, shown
    plain = "\n".join(line.rstrip() for line in STYLE.sub("", shown).splitlines())
    assert "done (1.2 s, 120 tokens)\n    Use one:\n\n     • fast\n\n" in plain
    code, shown = on_terminal(["watch", DEBATE_ID, "--server", address], tmp_path, {"TERM": "dumb"})
    assert code == 0, shown
    assert "\x1b" not in shown
    assert "done (1.2 s, 120 tokens)\n    Use **one**:\n\n    - fast\n\n" in shown
