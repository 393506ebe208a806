"""What a model, a client or a file wrote, on a terminal or in a pipe to one: no command lets escapes through."""

import json
import re

import pytest

from parley.cli.__main__ import run
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator

HOSTILE = "\x1b]0;title\x07\x1b[2Jgone\x9b31m\u202eback\x08\x7f"
UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def hostile_round(debate: ScriptedDebate) -> None:
    debate.step("ada", "proposal", f"Use one.\n{HOSTILE}")
    debate.conclude(f"Use a monolith.\n\n{HOSTILE}")


COMMANDS = {
    "debate": ["debate", f"Which {HOSTILE}?"],
    "debate -v": ["debate", f"Which {HOSTILE}?", "-v"],
    "list": ["list"],
    "list --json": ["list", "--json"],
    "show": ["show", DEBATE_ID],
    "show --json": ["show", DEBATE_ID, "--json"],
    "watch": ["watch", DEBATE_ID],
    "watch --json": ["watch", DEBATE_ID, "--json"],
    "report": ["report", DEBATE_ID],
    "feedback": ["feedback", DEBATE_ID, "up", "-m", f"good {HOSTILE}"],
    "guide": ["guide", DEBATE_ID, f"mind {HOSTILE}"],
    "mute": ["mute", DEBATE_ID, f"ada{HOSTILE}"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_prints_escape_sequences_or_control_characters(
    name: str, orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.script = hostile_round
    orchestrator.report = f"# Report\n{HOSTILE}\n"
    run(["debate", f"Which {HOSTILE}?", "--server", orchestrator.address])
    run([*COMMANDS[name], "--server", orchestrator.address])
    out, err = capsys.readouterr()
    assert not UNSHOWN.search(out), out
    assert not UNSHOWN.search(err), err


def test_json_means_the_same_as_before(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.script = hostile_round
    run(["debate", "Which \u202e?", "--server", orchestrator.address])
    capsys.readouterr()
    assert run(["show", DEBATE_ID, "--json", "--server", orchestrator.address]) == 0
    assert json.loads(capsys.readouterr().out)["spec"]["question"] == "Which \u202e?"
