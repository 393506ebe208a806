"""Steering debates from other processes than those that hold and run them."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.harness import model_server
from tests.support.command import Command, Ended

DEBATE = ["debate", "One process or several?", "--agents", "architect,security", "--rounds", "4"]
ORCHESTRATOR = "127.0.0.1:7401"


@dataclass(frozen=True)
class Up:
    """A system that `parley up` runs on its own data folder, with a model that takes its time."""

    folder: Path
    system: Command

    def parley(self, *arguments: str) -> Ended:
        """What a command of another process comes to; it finds the system by the folder."""
        return Command(arguments, self.folder).end()

    def held(self) -> tuple[Command, str]:
        """A debate in its first round, and its id."""
        holding = Command(DEBATE, self.folder)
        holding.wait_for("round 1/4")
        return holding, self.parley("list", "--limit", "1").out.split()[4]


@pytest.fixture(scope="module")
def up(fixed_ports: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("up")
    with model_server("--latency-ms", "1500") as url:
        system = Command(["up"], folder, {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"})
        try:
            system.wait_for("Ctrl-C stops")
            yield Up(folder, system)
            system.signal(signal.SIGTERM)
            system.end()
        finally:
            Command.kill_all()


def read_sequence(ended: Ended, what: str) -> int:
    """The sequence that an intervention was told to be recorded as."""
    assert (ended.code, ended.err) == (0, [])
    said, number = ended.out.rstrip("\n").partition(f": {what}")[0].rsplit(" ", 1)
    assert said == "Recorded as event", ended.out
    return int(number)


def read_refusal(ended: Ended) -> tuple[int, str]:
    assert ended.out == ""
    (line,) = ended.err
    return ended.code, line


def test_a_running_debate_is_paused_guided_resumed_and_ended_early(up: Up) -> None:
    holding, debate = up.held()
    paused = read_sequence(up.parley("pause", debate, "--now"), "pause; calls in flight are stopped")
    holding.wait_for("paused")
    key = "checkpoint/1"
    closed = f"parley: checkpoint {key} of debate {debate} is not open; nothing was recorded"
    assert read_refusal(up.parley("continue", debate, "--checkpoint", key)) == (1, closed)
    guided = read_sequence(up.parley("guide", debate, "Mind the otters."), "guidance; ")
    ended = read_sequence(up.parley("end", debate, "--server", ORCHESTRATOR), "end of the rounds; ")
    where = f"resume; the debate goes on at {ORCHESTRATOR}"
    resumed = read_sequence(up.parley("resume", debate), where)
    assert paused < guided < ended < resumed
    held = holding.end()
    assert held.code == 0, held.err
    assert "**Confidence:**" in held.out
    assert not any("round 4/4" in line for line in held.err)
    report = up.parley("report", debate).out
    assert "Mind the otters." in report
    assert read_refusal(up.parley("guide", debate, "Too late.")) == (1, f"parley: debate {debate} has ended")


def test_a_running_debate_is_cancelled_and_whoever_holds_it_is_told(up: Up) -> None:
    holding, debate = up.held()
    code, line = read_refusal(up.parley("mute", debate, "nobody"))
    assert (code, line) == (
        2,
        "parley: unknown agent 'nobody'; agents of this debate: architect, security",
    )
    read_sequence(up.parley("cancel", debate, "too dear"), "cancel; the debate ends without an answer")
    held = holding.end()
    assert (held.code, held.err[-1]) == (1, f"parley: debate {debate} was cancelled")


def test_where_no_system_runs_nothing_is_recorded_and_the_line_says_what_to_do(tmp_path: Path) -> None:
    with model_server("--latency-ms", "30000") as slow:
        holding = Command(DEBATE, tmp_path, {"OPENAI_BASE_URL": slow, "PARLEY_MODEL": "test"})
        holding.wait_for("proposal: 2 to come")
        holding.signal(signal.SIGINT)
        debate = holding.end().err[-1].split()[-1]
    told = (
        "parley: no Parley runs on this machine; start one with: parley up, "
        f"or go on with the debate: parley debate --resume {debate}"
    )
    assert read_refusal(Command(["resume", debate], tmp_path).end()) == (1, told)
