"""`parley demo`: an example debate, played without a system."""

import asyncio
import re
import signal
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.cli.commands import demo
from parley.cli.commands.demo import play_at_speed, timed_items
from parley.client import Event, TextPiece, event_payload
from parley.example import read_example
from parley.runtime.clock import SystemClock
from parley.v1.event_pb2 import StepStarted, StepSucceeded
from tests.support.terminal import on_terminal

STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HAND = "An example. People wrote its texts; no model is asked, and nothing is stored."


class Pauses(SystemClock):
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        self.passed += max(seconds, 0.0)


def test_in_a_pipe_it_is_played_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = Pauses()
    monkeypatch.setattr("parley.cli.commands.demo.SystemClock", lambda: pauses)
    assert run(["demo"]) == 0
    told = capsys.readouterr()
    assert pauses.passed == 0
    assert told.out == read_example().debate.answer
    lines = told.err.splitlines()
    assert lines[0] == HAND
    assert lines[1].startswith("Question: At checkout our shop")
    assert "  critique: 6/6" in lines
    assert " · written by hand · 14 calls · " in lines[-3]
    assert "demo --report" in lines[-2]
    assert not list(folder.iterdir()), "nothing is stored"


def test_its_report_is_printed_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--report"]) == 0
    assert capsys.readouterr().out == read_example().report


@pytest.mark.parametrize("speed", [1.0, 4.0])
async def test_it_is_played_at_the_pace_of_its_record(speed: float) -> None:
    pauses = Pauses()
    events = read_example().events
    seen = [each async for each in play_at_speed(timed_items(events), speed, pauses)]
    assert [each for each in seen if isinstance(each, Event)] == list(events)
    recorded = (events[-1].time.ToNanoseconds() - events[0].time.ToNanoseconds()) / 1e9
    assert pauses.passed == pytest.approx(recorded / speed, abs=0.01)


def test_text_comes_piece_by_piece_while_its_step_runs() -> None:
    open_steps: dict[str, str] = {}
    for _, seen in timed_items(read_example().events):
        if isinstance(seen, TextPiece):
            assert seen.offset == len(open_steps[seen.key])
            open_steps[seen.key] += seen.text
            continue
        match event_payload(seen):
            case StepStarted():
                open_steps[seen.key] = ""
            case StepSucceeded(reply=reply):
                assert open_steps.pop(seen.key) == reply.text
            case _:
                pass
    assert not open_steps


def test_on_a_terminal_it_looks_like_a_debate(tmp_path: Path) -> None:
    code, shown = on_terminal(["demo", "--speed", "3"], tmp_path, {"TERM": "xterm-256color"})
    assert code == 0, shown
    plain = STYLE.sub("", shown)
    assert HAND in plain
    assert " criticizes " in plain
    coming = (
        "What stops the shop is",
        "Only webhooks complete",
        " • Where only webhooks",
        "The request hands its row over",
    )
    assert any(text in plain for text in coming), "text is shown as it comes"
    assert "1 Freeze the checkout. Before" in plain
    assert " ".join(plain.split()).endswith("debate QUESTION")
    answer = plain[plain.rindex("Record the payment before you make it") :]
    assert all(len(line) <= 80 for line in answer.splitlines())
    assert not list(tmp_path.iterdir()), "nothing is stored"


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "nan", "1001"])
def test_a_speed_that_is_none_is_refused(speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--speed", speed]) == 2
    assert capsys.readouterr().err == "parley: --speed: must be a number, 0.1 to 1000\n"


class Interrupted(Pauses):
    """A clock at which somebody presses Ctrl-C as soon as it is waited for."""

    async def sleep(self, seconds: float) -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()


def test_an_interrupt_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SystemClock", Interrupted)
    monkeypatch.setattr(demo, "is_on_terminal", lambda: True)
    assert run(["demo"]) == 130


class InterruptedWhileBusy(Pauses):
    """A clock at which somebody presses Ctrl-C, and that has nothing to wait for afterwards."""

    async def sleep(self, seconds: float) -> None:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_is_not_lost_if_the_picture_ends_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SystemClock", InterruptedWhileBusy)
    assert run(["demo"]) == 130
