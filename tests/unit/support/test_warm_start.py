"""A command that is forked off a process that has imported it behaves as one for which Python was started."""

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.command import Command
from tests.support.model_server import ModelServer
from tests.support.terminal import Terminal
from tests.support.warm_start import IMPORTED_BY_A_CLIENT, list_command, write_command


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["demo", "--report"], 0), (["list", "--limit", "x"], 2), (["show", "deb-1"], 1)],
)
def test_the_same_code_and_the_same_words_come_out(arguments: list[str], code: int, tmp_path: Path) -> None:
    warm = Command(arguments, tmp_path).end()
    assert warm == Command(arguments, tmp_path, new_python=True).end()
    assert warm.code == code


async def test_a_debate_imports_nothing_of_ours_again(tmp_path: Path, model_server: ModelServer) -> None:
    variables = {
        "PARLEY_STORE": f"sqlite:///{tmp_path / 'data'}",
        "PARLEY_EMBEDDING_FINE": "endpoint",
        "PARLEY_EMBEDDING_BASE_URL": model_server.base_url,
        "OPENAI_BASE_URL": model_server.base_url,
        "PARLEY_MODEL": "m",
    }
    ran = await asyncio.to_thread(
        subprocess.run,
        list_command("debate", "Which?", "--rounds", "1", module="tests.support.late_imports"),
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (0, "late: []"), ran.stderr


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


def test_a_program_that_starts_the_command_itself_gets_its_words_and_its_code(tmp_path: Path) -> None:
    write_command(tmp_path / "parley")
    for arguments, code in ((["--version"], 0), (["list", "--limit", "x"], 2)):
        ran = subprocess.run(
            ["./parley", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        warm = Command(arguments, tmp_path).end()
        assert (ran.returncode, ran.stdout, ran.stderr.splitlines()) == (code, warm.out, warm.err)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_what_such_a_program_started_ends_with_it(number: signal.Signals, tmp_path: Path) -> None:
    variables = {**os.environ, "PARLEY_STORE": f"sqlite:///{tmp_path / 'data'}"}
    command = list_command("demo", "--speed", "0.1", imports=IMPORTED_BY_A_CLIENT)
    shown, terminal = os.openpty()  # only on a terminal does it take its time
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        assert os.read(shown, 1)
        process.send_signal(number)
        with suppress(OSError):  # the terminal's end, once the fork has ended, which writes to it too
            while os.read(shown, 1024):
                pass
        os.close(shown)
        assert process.wait(30) != 0
