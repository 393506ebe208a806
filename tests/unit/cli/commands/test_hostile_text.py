"""What a model, a client, an endpoint or a file wrote, on a terminal or in a pipe to one: no command lets escapes through."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import parley.cli
from parley.cli.__main__ import run
from parley.cli.app import parley as command
from tests.support.hostile_services import HOSTILE, HostileServices, hostile_services
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator

UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\u202a-\u202e\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
NAME = HOSTILE.replace("/", "")
FILE = f"{NAME}.yaml"
CHOICES = 4
SERVER = "SERVER"
"""Stands for `--server ADDRESS`, of services that answer and of such that refuse."""

CASES: dict[str, list[list[str]]] = {
    "debate": [
        ["debate", f"Which {HOSTILE}?", "-v", SERVER],
        ["debate", "Which?", "-c", FILE, SERVER],
        ["debate", "-p", FILE, SERVER],
        ["debate", "-p", NAME],
        ["debate", "Which?", "--context", HOSTILE, SERVER],
        ["debate", "Which?", "-a", HOSTILE, "--report", f"{NAME}/r.md", "-o", f"{NAME}.md", SERVER],
        ["debate", "--resume", HOSTILE, SERVER],
        ["debate", "--list", SERVER],
    ],
    "eval": [
        ["eval", DEBATE_ID, SERVER],
        ["eval", DEBATE_ID, "--format", "csv", "-v", SERVER],
        ["eval", DEBATE_ID, "--format", "json", SERVER],
        ["eval", DEBATE_ID, "-c", FILE],
    ],
    "demo": [["demo"], ["demo", "--report"], ["demo", "--speed", HOSTILE]],
    "list": [["list", SERVER], ["list", "--json", SERVER]],
    "show": [["show", DEBATE_ID, SERVER], ["show", DEBATE_ID, "--json", SERVER], ["show", HOSTILE, SERVER]],
    "feedback": [
        ["feedback", DEBATE_ID, "up", "-m", HOSTILE, SERVER],
        ["feedback", DEBATE_ID, "down", "--json", SERVER],
    ],
    "watch": [["watch", DEBATE_ID, SERVER], ["watch", DEBATE_ID, "--json", SERVER]],
    "report": [
        ["report", DEBATE_ID, SERVER],
        ["report", DEBATE_ID, "--html", SERVER],
        ["report", DEBATE_ID, "-o", f"{NAME}/r.md", SERVER],
    ],
    "receipt": [["receipt", DEBATE_ID, SERVER], ["receipt", DEBATE_ID, "-o", f"{NAME}/r.json", SERVER]],
    "verify": [
        ["verify", FILE, SERVER],
        ["verify", FILE, "--keys", FILE],
        ["verify", HOSTILE, "--log", HOSTILE, "--answer", HOSTILE, SERVER],
    ],
    "analysis": [["analysis", DEBATE_ID, SERVER], ["analysis", DEBATE_ID, "--json", SERVER]],
    "agents": [["agents", SERVER], ["agents", "--json", SERVER], ["agents", "-c", FILE]],
    "roles": [["roles", "-c", FILE], ["roles", "--json"]],
    "ratings": [
        ["ratings", SERVER],
        ["ratings", "--domain", HOSTILE, SERVER],
        ["ratings", "--json", SERVER],
        ["ratings", "--agent", "ada", SERVER],
        ["ratings", "--agent", HOSTILE, "--json", SERVER],
    ],
    "relationships": [
        ["relationships", "ada", SERVER],
        ["relationships", HOSTILE, "--json", SERVER],
        ["relationships", HOSTILE, SERVER],
    ],
    "up": [["up", "-c", FILE], ["up", "--advertise", HOSTILE]],
    "mcp": [["mcp", "-c", FILE], ["mcp", SERVER], ["mcp", "--server", f"{HOSTILE}:1"]],
    "serve": [["serve", HOSTILE]],
    "memory search": [
        ["memory", "search", HOSTILE, SERVER],
        ["memory", "search", "Kafka?", "--domain", HOSTILE, "--json", SERVER],
    ],
    "memory show": [["memory", "show", DEBATE_ID, SERVER], ["memory", "show", DEBATE_ID, "--json", SERVER]],
    "memory patterns": [
        ["memory", "patterns", HOSTILE, SERVER],
        ["memory", "patterns", "--domain", HOSTILE, "--json", SERVER],
    ],
    "memory positions": [
        ["memory", "positions", SERVER],
        ["memory", "positions", "--agent", HOSTILE, "--flips", SERVER],
        ["memory", "positions", "--agent", HOSTILE, "--json", SERVER],
    ],
    "memory moments": [
        ["memory", "moments", SERVER],
        ["memory", "moments", "--kind", HOSTILE, SERVER],
        ["memory", "moments", "--kind", "reversal", "--json", SERVER],
    ],
    "memory forget": [
        ["memory", "forget", DEBATE_ID, SERVER],
        ["memory", "forget", DEBATE_ID, "-y", SERVER],
    ],
    "keys add": [["keys", "add", HOSTILE], ["keys", "add", "ci", "--tenant", HOSTILE]],
    "keys list": [["keys", "list", "--tenant", HOSTILE], ["keys", "list", "--json"]],
    "keys revoke": [["keys", "revoke", HOSTILE]],
    "hooks add": [
        ["hooks", "add", HOSTILE, "--webhook", f"https://example.org/{HOSTILE}", SERVER],
        ["hooks", "add", "ci", "--file", HOSTILE, "--event", HOSTILE, SERVER],
    ],
    "hooks list": [["hooks", "list", SERVER], ["hooks", "list", "--json", SERVER]],
    "hooks remove": [["hooks", "remove", HOSTILE, SERVER]],
    "hooks rotate": [["hooks", "rotate", HOSTILE, SERVER]],
    "hooks test": [["hooks", "test", HOSTILE, SERVER]],
    "hooks deliveries": [
        ["hooks", "deliveries", "--hook", HOSTILE, SERVER],
        ["hooks", "deliveries", "--json", SERVER],
    ],
    "hooks resend": [["hooks", "resend", HOSTILE, SERVER]],
    "completion": [["completion", "bash"], ["completion", HOSTILE]],
    "config-schema": [["config-schema"], ["config-schema", HOSTILE]],
    "pause": [["pause", DEBATE_ID, SERVER]],
    "resume": [["resume", DEBATE_ID, SERVER]],
    "guide": [["guide", DEBATE_ID, HOSTILE, "--checkpoint", HOSTILE, SERVER]],
    "end": [["end", DEBATE_ID, SERVER]],
    "mute": [["mute", DEBATE_ID, HOSTILE, SERVER]],
    "unmute": [["unmute", DEBATE_ID, HOSTILE, SERVER]],
    "cancel": [["cancel", DEBATE_ID, HOSTILE, SERVER]],
    "continue": [["continue", DEBATE_ID, SERVER]],
    "answer": [["answer", DEBATE_ID, "yes", SERVER], ["answer", DEBATE_ID, "--to", HOSTILE, "yes", SERVER]],
    "approve": [["approve", DEBATE_ID, HOSTILE, SERVER], ["approve", DEBATE_ID, "--no", SERVER]],
    "delete": [["delete", DEBATE_ID, "-y", SERVER], ["delete", DEBATE_ID, SERVER]],
    "export": [["export", "-o", f"{NAME}.zip", SERVER], ["export", "-o", f"{NAME}/x.zip", DEBATE_ID, SERVER]],
    "import": [
        ["import", FILE, SERVER],
        ["import", HOSTILE, "--keys", FILE, SERVER],
        ["import", HOSTILE, SERVER],
    ],
    "open": [
        ["open", "--print", "--edge", f"http://[{HOSTILE}"],
        ["open", "--print", "--edge", f"http://127.0.0.1:1/{HOSTILE}"],
        ["open", "--print", "--server", f"{HOSTILE}:1"],
        ["open", HOSTILE, "--print"],
    ],
    "audit": [
        ["audit", SERVER],
        ["audit", "--json", SERVER],
        ["audit", "--subject", HOSTILE, "--debate", HOSTILE, SERVER],
        ["audit", "--act", HOSTILE, SERVER],
        ["audit", "--holds", HOSTILE, SERVER],
    ],
    "backup": [["backup", NAME]],
    "restore": [["restore", HOSTILE]],
    "rewrap": [["rewrap"], ["rewrap", HOSTILE]],
}


def commands(group: click.Group, before: str = "") -> Iterator[str]:
    for name, each in group.commands.items():
        if isinstance(each, click.Group):
            yield from commands(each, f"{before}{name} ")
        else:
            yield f"{before}{name}"


@pytest.fixture(scope="module")
def services() -> Iterator[HostileServices]:
    with hostile_services() as serving:
        yield serving


@pytest.fixture(autouse=True)
def hostile_files(folder: Path) -> None:
    escaped = json.dumps(HOSTILE)
    (folder / FILE).write_text(
        f"agents: [{{role: {escaped}, name: {escaped}}}]\nroles: {{{escaped}: {escaped}}}\n{escaped}: 1\n"
    )


def test_every_command_is_tried() -> None:
    assert set(CASES) == set(commands(command))


def tries(name: str, services: HostileServices) -> Iterator[list[str]]:
    """The command lines, for services that answer in each of several ways and then refuse."""
    for words in CASES[name]:
        for choice, refuses in [*((number, False) for number in range(CHOICES)), (0, True)]:
            services.choice, services.refuses = choice, refuses
            at = words.index(SERVER) if SERVER in words else len(words)
            yield [
                *words[:at],
                *(["--server", services.address] if SERVER in words else []),
                *words[at + 1 :],
            ]
            if SERVER not in words:
                break


@pytest.mark.parametrize("name", sorted(commands(command)))
def test_no_command_prints_escape_sequences_or_control_characters(
    name: str, services: HostileServices, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in tries(name, services):
        run(words)
        said = capsys.readouterr()
        for text in said:
            assert not UNSHOWN.search(text), (words, text)
            assert "internal error" not in text, (words, text)


def test_no_text_begins_a_line_that_poses_as_ours(
    services: HostileServices, capsys: pytest.CaptureFixture[str]
) -> None:
    services.choice, services.refuses = 0, False
    run(["show", DEBATE_ID, "--server", services.address])
    ours = capsys.readouterr().out.split("\n\n", 1)[0].splitlines()
    assert len(ours) > 10
    assert not [line for line in ours if line.startswith(("over", "next"))]


def test_nothing_in_the_command_writes_to_a_stream_but_what_makes_text_printable() -> None:
    """What rich writes has been made printable before: that is tried above, and in the tests of `terminal/`."""
    root = Path(parley.cli.__file__).parent
    allowed = {"printing.py"}
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).as_posix() in allowed:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            written = f"{ast.unparse(node.func)}(" if isinstance(node, ast.Call) else ""
            assert not re.match(
                r"(sys\.(stdout|stderr|__stdout__|__stderr__)(\.buffer)?\.write|print\(|click\.(echo|secho|prompt|confirm))",
                written,
            ), f"{path}:{getattr(node, 'lineno', 0)}: {written}; use parley.cli.printing"


def hostile_round(debate: ScriptedDebate) -> None:
    debate.step("ada", "proposal", f"Use one.\n{HOSTILE}")
    debate.conclude(f"Use a monolith.\n\n{HOSTILE}")


def test_json_means_the_same_as_before(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.script = hostile_round
    run(["debate", f"Which {HOSTILE}?", "--server", orchestrator.address])
    capsys.readouterr()
    assert run(["show", DEBATE_ID, "--json", "--server", orchestrator.address]) == 0
    assert json.loads(capsys.readouterr().out)["spec"]["question"] == f"Which {HOSTILE}?"


def test_files_that_are_written_hold_no_escapes_either(
    orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    orchestrator.script = hostile_round
    orchestrator.report = f"# Report\n{HOSTILE}\n"
    at = ["--server", orchestrator.address]
    assert run(["debate", "Which?", "-o", "answer.md", "--report", "report.md", *at]) == 0
    assert run(["report", DEBATE_ID, "-o", "again.md", *at]) == 0
    for name in ("answer.md", "report.md", "again.md"):
        text = (folder / name).read_text("utf-8")
        assert "gone" in text or "monolith" in text
        assert not UNSHOWN.search(text), name
