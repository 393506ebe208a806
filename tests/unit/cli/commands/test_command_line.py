"""The command line itself: help, and what is refused before anything runs."""

import json
import re
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from tests.support.scripted_orchestrator import DEBATE_ID
from tests.unit.cli.commands.scripts import ROLES


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (
            ["debate", "--clarify", "x"],
            2,
            "--clarify: the agents ask on a terminal, and stdin and stderr are none; leave it out to begin without asking",
        ),
        (["debate", "--round", "1", "x"], 2, "no such option: --round; did you mean --rounds?"),
        (["debate", "--foo", "x"], 2, "no such option: --foo"),
        (["debate", "--config-file", "a", "x"], 2, "no such option: --config-file"),
        (["frobnicate"], 2, "no such command: frobnicate"),
        (["lst"], 2, "no such command: lst; did you mean list?"),
        (["Kafka or SQS?"], 2, "no such command: Kafka or SQS?; to ask a question: parley debate QUESTION"),
        (["memory", "Kafka or SQS?"], 2, "no such command: Kafka or SQS?"),
        (
            ["debate", "a", "b"],
            2,
            "got unexpected extra argument (b); put quotes around a text of several words",
        ),
        (["list", "b"], 2, "got unexpected extra argument (b)"),
        (
            ["audit", "--since", "yesterday"],
            2,
            "--since: must be a day such as 2026-11-28, or a time such as 2026-11-28T14:30:00, not 'yesterday'",
        ),
        (["hooks", "test", "ci"], 2, "'ci' is not the id of a hook; parley hooks list shows them"),
        (
            ["debate", "a", "--hook", "ci"],
            2,
            "--hook: 'ci' is not the id of a hook; parley hooks list shows them",
        ),
        (["memory", "search", " "], 2, "TEXT is blank; say what past debates should be about"),
        (["hooks", "resend", "1"], 2, "'1' is not the id of a delivery; parley hooks deliveries shows them"),
        (["debate"], 2, "give a question, or a file with --problem-description FILE"),
        (
            ["debate", " \n "],
            2,
            "the question is empty; give one, or a file with --problem-description FILE",
        ),
        (
            ["debate", "x", "--problem-description", "q.md"],
            2,
            "give a question or --problem-description q.md, not both",
        ),
        (["debate", "--problem-description", "q.md"], 2, "--problem-description q.md: there is no such file"),
        (["debate", "--problemDescription", "."], 2, "--problem-description .: is not a file"),
        (["debate", "--problem-description", "blank.md"], 2, "--problem-description blank.md: is empty"),
        (
            ["debate", "--problem-description", "latin.md"],
            2,
            "--problem-description latin.md: is not UTF-8 text",
        ),
        (["debate", "-"], 2, "stdin has no question; give one, or a file with --problem-description FILE"),
        (["debate", "-", "-p", "q.md"], 2, "give a question or --problem-description q.md, not both"),
        (["debate", "x", "-r", "0"], 2, "--rounds: must be a whole number, 1 to 100"),
        (["debate", "x", "--rounds", "0"], 2, "--rounds: must be a whole number, 1 to 100"),
        (["debate", "x", "--rounds", "abc"], 2, "--rounds: must be a whole number, 1 to 100"),
        (["show", "deb-nope"], 2, "'deb-nope' is not a debate id; parley list shows them"),
        (["list", "--server", "foo"], 2, "--server: must be HOST:PORT, such as 127.0.0.1:7401, not 'foo'"),
        (
            ["list", "--server", "localhost:70000"],
            2,
            "--server: must be HOST:PORT, such as 127.0.0.1:7401, not 'localhost:70000'",
        ),
        (["debate", "x", "--rounds"], 2, "option '--rounds' requires an argument"),
        (["debate", "x", "--config", "none.yaml"], 4, "none.yaml: there is no such file"),
        (
            ["debate", "x", "--config", "bad.yaml"],
            4,
            "bad.yaml:2: is not YAML: expected the node content, but found '<stream end>'",
        ),
        (["debate", "x", "--agents", "a,,b"], 2, "--agents a,,b: has an empty name"),
        (["debate", "x", "--agents", "a b"], 2, "--agents a b: 'a b' is neither an id nor a role"),
        (
            ["debate", "x", "--agents", "kiss,simplicity"],
            2,
            "--agents kiss,simplicity: simplicity is there twice",
        ),
        (
            ["debate", "x", "--agents", "judge,judge"],
            2,
            "--agents judge,judge: the judge cannot debate; leave it out",
        ),
        (
            ["debate", "x", "--agents", "security,wizard"],
            2,
            f"--agents: unknown role 'wizard'; {ROLES}",
        ),
        (
            ["debate", "x", "--format", "opera"],
            2,
            "--format: unknown format 'opera'; known formats: arena, moderated, panel",
        ),
        (["debate", "x", "--protocol", "socratic"], 2, "--protocol: only for --format arena"),
        (
            ["debate", "x", "--format", "panel", "--topology", "ring"],
            2,
            "--topology: only for --format arena",
        ),
        (["debate", "x", "--no-checkpoints"], 2, "--no-checkpoints: only for --format moderated"),
        (
            ["debate", "x", "--format", "arena", "--max-rounds", "2"],
            2,
            "--max-rounds: only for --format moderated",
        ),
        (
            ["debate", "x", "--effort", "quick", "--rounds", "3"],
            2,
            "--effort quick asks for drafts alone, without rounds; leave out --rounds or --effort",
        ),
        (["debate", "x", "--format", "arena", "--effort", "quick"], 2, "--effort: only for --format panel"),
        (
            ["debate", "x", "--format", "moderated", "--effort", "quick"],
            2,
            "--effort: only for --format panel",
        ),
        (["debate", "x", "--perspectives", "5"], 2, "--perspectives: must be a whole number, 2 to 4"),
        (
            ["debate", "x", "--format", "moderated", "--rounds", "2", "--max-rounds", "3"],
            2,
            "--rounds and --max-rounds mean the same; leave one of them out",
        ),
        (["debate", "--list", "x"], 2, "--list lists debates and starts none; leave out a question"),
        (
            ["debate", "--list", "--resume", DEBATE_ID],
            2,
            "--list lists debates and starts none; leave out --resume",
        ),
        (
            ["debate", "--resume", DEBATE_ID, "--no-checkpoints"],
            2,
            "--resume continues a debate with its own settings; leave out --no-checkpoints",
        ),
        (["debate", "x", "--context", "gone"], 2, "--context gone: there is no such file or folder"),
        (["debate", "x", "--context", "latin.md"], 2, "--context latin.md: is not UTF-8 text"),
        (
            ["debate", "--resume", DEBATE_ID, "--context", "blank.md"],
            2,
            "--resume continues a debate with its own settings; leave out --context",
        ),
        (["debate", "x", "--output", "."], 2, "--output .: is a folder; name a file in it"),
        (
            ["debate", "x", "--resume", DEBATE_ID],
            2,
            "--resume continues a debate with its own settings; leave out a question",
        ),
        (["serve", "nothing"], 2, None),
        (["show"], 2, "missing argument 'ID'"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_a_code(
    arguments: list[str], code: int, line: str | None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "blank.md").write_text(" \n")
    (folder / "latin.md").write_bytes(b"\xe9t\xe9")
    (folder / "bad.yaml").write_text("agents: [\n")
    assert run(arguments) == code
    out, err = capsys.readouterr()
    told = err.splitlines()
    assert out == ""
    assert len(told) == 1
    assert told[0].startswith("parley: ")
    if line is not None:
        assert told[0] == f"parley: {line}"


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: parley ")
    assert "ratings" in out
    assert err == ""
    keeping = out.partition("Commands that keep and remove debates:")[2]
    named = [line.split()[0] for line in keeping.splitlines() if re.match(r"  \S", line)]
    assert named == ["delete", "export", "import", "backup", "restore", "rewrap"]


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config-schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Parley configuration"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_learns_to_complete(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["completion", shell]) == 0
    assert "_PARLEY_COMPLETE" in capsys.readouterr().out
    monkeypatch.setenv("_PARLEY_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "parley debate --ro")
    monkeypatch.setenv("COMP_CWORD", "--ro" if shell == "fish" else "2")
    with pytest.raises(SystemExit):
        run([])
    assert "--rounds" in capsys.readouterr().out


@pytest.mark.parametrize("group", [[], ["hooks"], ["memory"], ["keys"]])
def test_the_help_of_a_group_cuts_no_sentence(group: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*group, "--help"]) == 0
    assert "..." not in capsys.readouterr().out.partition("\nCommands:")[2]
