"""A command that is forked off a process that has imported it behaves as one for which Python was started."""

import signal
from pathlib import Path

import pytest

from tests.support.command import Command
from tests.support.terminal import Terminal


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["demo", "--report"], 0), (["list", "--limit", "x"], 2), (["show", "deb-1"], 1)],
)
def test_the_same_code_and_the_same_words_come_out(arguments: list[str], code: int, tmp_path: Path) -> None:
    warm = Command(arguments, tmp_path).end()
    assert warm == Command(arguments, tmp_path, new_python=True).end()
    assert warm.code == code


def test_variables_and_the_folder_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "parley.yaml").write_text("agents: {}\nmodel: [1, 2]\n")
    for variables in ({}, {"PARLEY_STORE": "nothing"}):
        warm = Command(["roles"], tmp_path, variables).end()
        assert warm == Command(["roles"], tmp_path, variables, new_python=True).end()
        assert warm.code != 0
        assert "parley.yaml" in warm.err[0]


def test_ctrl_c_ends_it_on_its_terminal(tmp_path: Path) -> None:
    with Terminal(["demo", "--speed", "0.5"], tmp_path, {"TERM": "xterm-256color"}) as terminal:
        terminal.wait_until(lambda _: terminal.screen.cursor.hidden)
        terminal.type(b"\x03")
        assert terminal.end() == 130
        terminal.assert_sane()


def test_one_that_is_killed_says_so_as_any_process_does(tmp_path: Path) -> None:
    with Terminal(["demo", "--speed", "0.5"], tmp_path, {"TERM": "dumb"}) as terminal:
        terminal.wait_until(bool)
        terminal.process.send_signal(signal.SIGKILL)
        assert terminal.end() == -signal.SIGKILL
