"""Every command and option on a terminal, in a pipe, with stdin closed and interrupted: never a traceback, the terminal as it was."""

import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from parley.cli.app import parley
from parley.client import DebateSpec
from parley.v1.agent_pb2 import Agent
from parley.v1.gateway_pb2 import RouteStatus
from parley.v1.memory_pb2 import GetRecordResponse, PastDebate
from parley.v1.orchestrator_pb2 import ListAvailableAgentsResponse
from parley.v1.ratings_pb2 import MatchRecord, Rating, RatingChange
from tests.support.command import Command
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator, scripted
from tests.support.terminal import Terminal
from tests.unit.cli.commands.scripts import ANSWER, run_one_round

XTERM = {"TERM": "xterm-256color"}
FILES = {"q.md": "Which?", "context.md": "Ten users.", "parley.yaml": "debate: {domain: data}\n"}

DEBATE: dict[str, list[str]] = {
    "--server": ["Which?"],
    "-p": ["-p", "q.md"],
    "--agents": ["Which?", "-a", "ada,bo"],
    "--format": ["Which?", "--format", "panel"],
    "--protocol": ["Which?", "--format", "arena", "--protocol", "socratic"],
    "--topology": ["Which?", "--format", "arena", "--topology", "ring"],
    "--voting": ["Which?", "--format", "arena", "--voting", "weighted"],
    "--sequential": ["Which?", "--format", "arena", "--sequential"],
    "--team": ["Which?", "--format", "arena", "--team", "2"],
    "--trickster": ["Which?", "--format", "arena", "--trickster"],
    "--observer": ["Which?", "--format", "arena", "--observer"],
    "--perspectives": ["Which?", "--format", "moderated", "--perspectives", "3"],
    "--max-rounds": ["Which?", "--format", "moderated", "--max-rounds", "2"],
    "--checkpoints": ["Which?", "--format", "moderated", "--no-checkpoints"],
    "--model": ["Which?", "--model", "openai/m"],
    "--rounds": ["Which?", "-r", "2"],
    "--effort": ["Which?", "--effort", "quick"],
    "--config": ["Which?", "-c", "parley.yaml"],
    "--trust-config": ["Which?", "--trust-config"],
    "--context": ["Which?", "--context", "context.md"],
    "--fact": ["Which?", "--fact", "team=Payments"],
    "--research": ["Which?", "--research"],
    "--page": ["Which?", "--page", "https://a.example/"],
    "--clarify": ["Which?", "--no-clarify"],
    "--no-history": ["Which?", "--no-history"],
    "--no-patterns": ["Which?", "--no-patterns"],
    "--no-knowledge": ["Which?", "--no-knowledge"],
    "--max-output-tokens": ["Which?", "--max-output-tokens", "64"],
    "--context-tokens": ["Which?", "--context-tokens", "4096"],
    "--label": ["Which?", "--label", "team=payments"],
    "--hook": ["Which?", "--hook", "hook-0123456789ab"],
    "--output": ["Which?", "-o", "out.md"],
    "--report": ["Which?", "--report", "report.md"],
    "--verbose": ["Which?", "-v"],
    "--quiet": ["Which?", "-q"],
    "--progress": ["Which?", "--progress", "none"],
    "--resume": ["--resume", DEBATE_ID],
    "--list": ["--list"],
}
"""What shows each option of `parley debate`; the server is added."""

READING: dict[str, list[str]] = {
    "list": ["list", "--limit", "3"],
    "list --label": ["list", "--label", "team=payments"],
    "list --json": ["list", "--limit", "3", "--json"],
    "show": ["show", DEBATE_ID],
    "show --json": ["show", DEBATE_ID, "--json"],
    "watch": ["watch", DEBATE_ID, "--after", "1"],
    "watch --quiet": ["watch", DEBATE_ID, "--quiet"],
    "watch --json": ["watch", DEBATE_ID, "--json"],
    "report": ["report", DEBATE_ID],
    "report --output": ["report", DEBATE_ID, "-o", "report.md"],
    "memory search": ["memory", "search", "Kafka?", "--limit", "3"],
    "memory show": ["memory", "show", DEBATE_ID],
}
STEERING: dict[str, list[str]] = {
    "pause": ["pause", DEBATE_ID, "--now"],
    "resume": ["resume", DEBATE_ID],
    "guide": ["guide", DEBATE_ID, "be brief"],
    "end": ["end", DEBATE_ID],
    "mute": ["mute", DEBATE_ID, "ada"],
    "unmute": ["unmute", DEBATE_ID, "ada"],
    "cancel": ["cancel", DEBATE_ID, "enough"],
    "continue": ["continue", DEBATE_ID, "--checkpoint", "k"],
    "answer": ["answer", DEBATE_ID, "ten"],
    "approve": ["approve", DEBATE_ID, "--no"],
}
EVALUATING: dict[str, list[str]] = {
    "eval": ["eval", DEBATE_ID],
    "eval --output": ["eval", DEBATE_ID, "-o", "out.csv"],
    "feedback": ["feedback", DEBATE_ID, "up", "-m", "it helped"],
}
LISTING: dict[str, list[str]] = {
    "agents": ["agents"],
    "relationships": ["relationships", "ada"],
    "ratings": ["ratings", "--domain", "storage"],
    "ratings --agent": ["ratings", "--agent", "ada"],
}
ALONE: dict[str, list[str]] = {
    "demo": ["demo", "--speed", "100"],
    "demo --report": ["demo", "--report"],
}
"""Commands that ask no server."""
ALL = {
    **{f"debate {name}": ["debate", *arguments] for name, arguments in DEBATE.items()},
    **READING,
    **STEERING,
    **EVALUATING,
    **LISTING,
    **ALONE,
}


def command(name: str, address: str) -> list[str]:
    """The arguments of a command, with the server that it asks."""
    return ALL[name] if name in ALONE else [*ALL[name], "--server", address]


@pytest.fixture(scope="module")
def serving() -> Iterator[ScriptedOrchestrator]:
    debate = PastDebate(debate_id=DEBATE_ID, question="Which?", conclusion="This one.")
    orchestrator = ScriptedOrchestrator(
        script=run_one_round,
        memories={DEBATE_ID: GetRecordResponse(debate=debate)},
        agents=ListAvailableAgentsResponse(
            agents=[Agent(id="ada", role="architect")],
            default_team=["ada"],
            routes=[RouteStatus(name="r/m", context_tokens=8192)],
        ),
        ratings=[Rating(agent_id="ada", elo=1510, matches=3)],
        matches=[MatchRecord(debate_id=DEBATE_ID, changes=[RatingChange(agent_id="ada", after=1510)])],
    )
    with scripted(orchestrator):
        yield orchestrator


@pytest.fixture
def address(serving: ScriptedOrchestrator, folder: Path) -> str:
    """An orchestrator that has a debate which is over, and files to be named."""
    serving.debate = ScriptedDebate(DebateSpec(question="Which?"))
    run_one_round(serving.debate)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return serving.address


def run_in_pipe(arguments: list[str], folder: Path, *, closed: bool) -> tuple[int, str, str]:
    """What a command comes to in a pipe, with nothing on stdin, or with stdin closed."""
    ended = Command(arguments, folder, without_stdin=closed).end()
    return ended.code, ended.out, "\n".join(ended.err)


def test_no_option_of_the_debate_command_is_left_out_here() -> None:
    command = parley.commands["debate"]
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert all(any(name in DEBATE for name in each.opts) for each in options), [
        each.opts for each in options if not any(name in DEBATE for name in each.opts)
    ]


SEEN = {
    *("--server", "-p", "--config", "--trust-config", "--research", "--clarify", "--output", "--report"),
    *("--verbose", "--quiet", "--progress", "--resume", "--list"),
}
"""Options of `parley debate` that change what a person sees or is asked."""
UNSEEN = {f"debate {each}" for each in DEBATE.keys() - SEEN}
DRAWN = [pytest.param(name, marks=[pytest.mark.long] if name in UNSEEN else []) for name in ALL]
"""All but those that change only what the orchestrator is asked for, which pipes show: these where there is time."""


@pytest.mark.parametrize("name", DRAWN)
def test_on_a_terminal(name: str, address: str, folder: Path) -> None:
    with Terminal(command(name, address), folder, XTERM, columns=72) as terminal:
        assert terminal.end() == 0, terminal.text
        terminal.assert_sane()
        assert "Traceback" not in terminal.written
        assert "\x1b[?25l" not in terminal.written or "\x1b[?25h" in terminal.written


FIRST = {arguments[0]: name for name, arguments in reversed(ALL.items())}
ONCE = [pytest.param(name, marks=[] if name in FIRST.values() else [pytest.mark.long]) for name in ALL]
"""One of each command, the rest where there is time: they differ in an option alone."""


@pytest.mark.parametrize("name", ALL)
def test_in_a_pipe(name: str, address: str, folder: Path) -> None:
    ends_well(name, *run_in_pipe(command(name, address), folder, closed=False))


@pytest.mark.parametrize("name", ONCE)
def test_with_stdin_closed(name: str, address: str, folder: Path) -> None:
    ends_well(name, *run_in_pipe(command(name, address), folder, closed=True))


def ends_well(name: str, code: int, out: str, err: str) -> None:
    assert code == 0, err
    assert "Traceback" not in err
    assert "\x1b" not in out + err
    if name.startswith("debate"):
        if name == "debate --list":
            assert DEBATE_ID in out
        else:
            assert out == ("" if name == "debate --output" else ANSWER)
        silent = {"debate --progress", "debate --resume", "debate --list"}
        assert ("round 1/1" in err) == (name not in silent)


def test_an_interrupt_amid_the_picture_gives_the_terminal_back(folder: Path) -> None:
    with Terminal(["demo", "--speed", "1"], folder, XTERM) as terminal:
        terminal.wait_until(lambda _: terminal.screen.cursor.hidden)
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130, terminal.text
        terminal.assert_sane()


# Python is started for each: its start is what is interrupted, and takes most of a second of the processor.
@pytest.mark.parametrize(
    "name",
    [
        *("debate --server", "list", "watch", "pause", "agents", "eval"),
        pytest.param("demo", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("draws", [1, pytest.param(6, marks=pytest.mark.long)])
def test_an_interrupt_at_any_moment_is_quiet(
    name: str, draws: int, address: str, serving: ScriptedOrchestrator, folder: Path
) -> None:
    """From our first module on to after the last line: some moments, drawn once."""
    go_on = threading.Event()

    def hold(debate: ScriptedDebate) -> None:
        go_on.wait(10)
        debate.conclude()

    serving.script = hold
    moments = random.Random(name)
    try:
        for _ in range(draws):
            with Terminal(command(name, address), folder, XTERM, new_python=True) as terminal:
                ends = time.monotonic() + moments.uniform(0.3, 1.5)
                while time.monotonic() < ends and terminal.process.poll() is None:
                    terminal.read(0.02)
                terminal.process.send_signal(signal.SIGINT)
                code = terminal.end()
                assert code in {130, -signal.SIGINT, 0, 1}, (code, terminal.text)
                terminal.assert_sane()
                # Before Python has come to our first module, the interrupt is Python's own to tell.
                assert "Exception ignored" not in terminal.written, terminal.written
                assert not ("Traceback" in terminal.written and "/parley/" in terminal.written), (
                    terminal.written
                )
    finally:
        go_on.set()
        serving.script = run_one_round
