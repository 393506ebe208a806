"""`parley debate` while it runs on a terminal: what is seen in place, and what is left of it."""

import select
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from parley.v1.debate_pb2 import DebateSpec, Work
from parley.v1.event_pb2 import (
    DebateCreated,
    PhaseFinished,
    PhaseStarted,
    RoundStarted,
    StepFailed,
    StepStarted,
    Warned,
)
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator
from tests.support.terminal import Terminal

KEY = "round/1/proposal/ada"
SECONDS = 30.0
XTERM = {"TERM": "xterm-256color"}


def make_created() -> DebateCreated:
    spec = DebateSpec()
    for name in ("ada", "bo"):
        spec.agents.add().agent.id = name
    return DebateCreated(spec=spec)


class Held:
    """A debate in which ada's text comes, until the test lets it go on."""

    def __init__(
        self,
        *,
        structured: bool = False,
        text: str = "Use one, since it is",
        warning: str = "it is late",
    ) -> None:
        self.go_on = threading.Event()
        self._structured = structured
        self._text = text
        self._warning = warning

    def __call__(self, debate: ScriptedDebate) -> None:
        debate.add(make_created())
        debate.add(RoundStarted(number=1, total=1))
        debate.add(PhaseStarted(activity="proposal", round=1, expected=2))
        debate.add(
            StepFailed(work=Work(activity="proposal", agent_id="bo", round=1), reason="X", message="no")
        )
        debate.add(Warned(message=self._warning))
        work = Work(activity="proposal", doing="proposes", agent_id="ada", round=1)
        debate.add(StepStarted(work=work, is_structured=self._structured), key=KEY, attempt=1)
        debate.stream(KEY, self._text)
        self.go_on.wait(SECONDS)
        debate.step("ada", "proposal", "Use one, since it is enough.")
        debate.add(PhaseFinished(activity="proposal", round=1))
        debate.conclude()


@pytest.fixture
def held(orchestrator: ScriptedOrchestrator) -> Held:
    orchestrator.script = script = Held()
    return script


@pytest.fixture
def arguments(orchestrator: ScriptedOrchestrator) -> list[str]:
    return ["debate", "Which?", "--server", orchestrator.address]


def test_agents_are_watched_in_panels_that_are_gone_when_the_result_comes(
    arguments: list[str], held: Held, tmp_path: Path
) -> None:
    with Terminal(arguments, tmp_path, XTERM) as terminal:
        terminal.wait_for(
            "─ ada ", "proposes", "│ Use one, since it is", "Round 1/1", "proposal 0 of 2 answered, 1 failed"
        )
        assert terminal.screen.cursor.hidden
        held.go_on.set()
        assert terminal.end() == 0
        terminal.assert_sane()
        assert "Use a monolith." in terminal.text
        assert "warning: it is late" in terminal.text
        assert "bo: round 1 proposal failed: X: no" in terminal.text
        assert not any(sign in terminal.text for sign in ("╭", "│", "Round 1/1", "proposes"))


def test_json_is_read_as_words(
    arguments: list[str], orchestrator: ScriptedOrchestrator, tmp_path: Path
) -> None:
    orchestrator.script = held = Held(structured=True, text='{"issues": [{"text": "It **loses** writ')
    with Terminal(arguments, tmp_path, XTERM) as terminal:
        terminal.wait_for("─ ada ", "proposes", " • It loses writ")
        held.go_on.set()
        assert terminal.end() == 0
        assert '"' not in terminal.written


def test_what_is_said_meanwhile_stands_below_the_picture_and_afterwards_in_its_place(
    arguments: list[str], held: Held, tmp_path: Path
) -> None:
    with Terminal(arguments, tmp_path, XTERM) as terminal:
        terminal.wait_for("─ ada ", "warning: it is late")
        assert terminal.text.splitlines()[-2:] == [
            "bo: round 1 proposal failed: X: no",
            "warning: it is late",
        ]
        held.go_on.set()
        assert terminal.end() == 0
        lines = terminal.text.splitlines()
        assert lines.index("  bo: round 1 proposal failed: X: no") + 1 == lines.index("warning: it is late")


def test_long_warnings_are_wrapped_between_words_wherever_they_stand(
    arguments: list[str], orchestrator: ScriptedOrchestrator, tmp_path: Path
) -> None:
    orchestrator.script = held = Held(warning=f"it is {'rather ' * 20}late")
    with Terminal(arguments, tmp_path, XTERM, columns=60) as terminal:
        terminal.wait_for("─ ada ", " late")
        held.go_on.set()
        shown = terminal.text
        assert terminal.end() == 0
        for text in (shown, terminal.text):
            rows = [line.split() for line in text.splitlines() if "rather" in line]
            assert len(rows) == 3
            assert {*rows[1]} == {"rather"}, "no word is cut"


@pytest.mark.parametrize(
    "text", ["\x1b[2J\x1b[H\x1b]0;owned\x07 gone", "漢" * 300, "👩‍👩‍👧\u202e" * 99, "\t\r\x08" * 99]
)
def test_no_text_breaks_the_terminal(
    text: str, arguments: list[str], orchestrator: ScriptedOrchestrator, tmp_path: Path
) -> None:
    orchestrator.script = held = Held(text=text + " end")
    with Terminal(arguments, tmp_path, XTERM) as terminal:
        terminal.wait_for("─ ada ", "end", "╰")
        terminal.wait_until(lambda screen: screen.count("╭") == screen.count("╰") == 2)
        held.go_on.set()
        assert terminal.end() == 0
        terminal.assert_sane()
        assert "owned" not in terminal.screen.title
        assert not any(sign in terminal.text for sign in ("╭", "│"))


def is_one_picture(screen: str, lines: int) -> bool:
    boxes = screen.count("╭")
    return (
        screen.startswith("Round 1/1")
        and screen.count("Round 1/1") == 1
        and boxes == screen.count("╰") <= 2
        and screen.count("warning: it is late") == (lines > 4)
    )


@pytest.mark.parametrize(
    "sizes", [[(50, 40)], [(40, 10)], [(120, 50)], [(30, 4)], [(40, 10), (120, 50), (60, 20)]]
)
def test_the_picture_follows_the_size_of_the_terminal_and_leaves_nothing_behind(
    sizes: list[tuple[int, int]], arguments: list[str], held: Held, tmp_path: Path
) -> None:
    with Terminal(arguments, tmp_path, XTERM) as terminal:
        terminal.wait_for("─ ada ", "Use one, since it is")
        for columns, lines in sizes:
            terminal.resize(columns, lines)
            before = len(terminal.shown)
            while len(terminal.shown) < before + 1000:
                terminal.wait_for("Round 1/1")
                terminal.read()
            terminal.wait_until(partial(is_one_picture, lines=lines))
        held.go_on.set()
        assert terminal.end() == 0
        terminal.assert_sane()
        assert not any(sign in terminal.text for sign in ("╭", "│", "╰", "Round 1/1"))


def test_keys_pressed_at_the_picture_leave_no_trace(arguments: list[str], held: Held, tmp_path: Path) -> None:
    with Terminal(arguments, tmp_path, XTERM) as terminal:
        terminal.wait_for("─ ada ", "Use one, since it is")
        terminal.type(b"\x1b[A\x1b[A\r\r\rhallo")
        terminal.wait_until(lambda screen: "hallo" not in screen and screen.startswith("Round 1/1"))
        held.go_on.set()
        assert terminal.end() == 0
        assert not select.select([terminal.theirs], [], [], 0)[0], "the shell gets none of them"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--quiet"], True),
        (["--progress", "lines"], True),
        (["--progress", "none"], False),
    ],
)
def test_progress_is_shown_as_it_was_asked_for(
    asked: list[str],
    told: bool,
    arguments: list[str],
    held: Held,
    tmp_path: Path,
) -> None:
    held.go_on.set()
    with Terminal([*arguments, *asked], tmp_path, XTERM) as terminal:
        assert terminal.end() == 0
        terminal.assert_sane()
        assert ("\n  proposal: 1 of 2 answered, 1 failed" in terminal.written) == told
        assert ("warning: it is late" in terminal.written) == told
        assert not any(sign in terminal.written for sign in ("╭", "│"))
        assert "Use a monolith." in terminal.text


def end_by_one(terminal: Terminal) -> None:
    terminal.process.send_signal(signal.SIGINT)


def end_by_sigterm(terminal: Terminal) -> None:
    terminal.process.send_signal(signal.SIGTERM)


def end_by_two(terminal: Terminal) -> None:
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait_for("Ctrl-C again")
    terminal.process.send_signal(signal.SIGINT)


@pytest.mark.parametrize(
    "ended",
    [
        end_by_one,
        end_by_sigterm,
        end_by_two,
    ],
)
def test_whoever_stops_it_gets_the_terminal_back(
    ended: Callable[[Terminal], None],
    arguments: list[str],
    orchestrator: ScriptedOrchestrator,
    held: Held,
    tmp_path: Path,
) -> None:
    if ended is end_by_two:
        orchestrator.pausing = threading.Event()
    with Terminal(arguments, tmp_path, XTERM) as terminal:
        terminal.wait_for("─ ada ", "Use one, since it is")
        ended(terminal)
        assert terminal.end() == 130
        terminal.assert_sane()
        assert "Traceback" not in terminal.written
        if ended is not end_by_two:
            assert f"Paused. Go on with:\n  parley debate --resume {DEBATE_ID}" in terminal.text
            assert "╭" not in terminal.text
    held.go_on.set()


def test_a_stopped_process_gives_the_terminal_back_and_draws_again_afterwards(
    arguments: list[str], held: Held, tmp_path: Path
) -> None:
    with Terminal(arguments, tmp_path, XTERM) as terminal:
        terminal.wait_for("─ ada ", "Use one, since it is")
        terminal.process.send_signal(signal.SIGTSTP)
        terminal.wait_until_sane()
        assert "╭" not in terminal.text
        terminal.wait_until_stopped()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for("─ ada ", "Use one, since it is")
        held.go_on.set()
        assert terminal.end() == 0
        terminal.assert_sane()
