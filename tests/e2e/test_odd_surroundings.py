"""What the command does where stdout, a home or file descriptors are missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import model_server as models
from tests.support.command import Command

pytestmark = pytest.mark.timeout(300)  # a start takes its time on a machine that is busy

TWO = ["--agents", "architect,security", "--rounds", "1"]


def parley(
    folder: Path, before: str, *arguments: str, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in a shell that prepares its surroundings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "OPENAI_"))}
    given = {
        **kept,
        "PARLEY_STORE": f"sqlite:///{folder / 'data'}",
        "PARLEY_LOCAL_SERVERS": "off",
        **(variables or {}),
    }
    return subprocess.run(
        [
            "bash",
            "-c",
            before.replace("COMMAND", '"$@"'),
            "-",
            sys.executable,
            "-m",
            "parley.cli",
            *arguments,
        ],
        cwd=folder,
        env=given,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("stdout", "why"), [("COMMAND >&-", "it is closed"), ("COMMAND >/dev/full", "No space left on device")]
)
def test_an_answer_that_stdout_does_not_take_is_kept_and_one_line_says_so(
    tmp_path: Path, stdout: str, why: str
) -> None:
    with models() as url:
        variables: dict[str, str] = {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"}
        ended = parley(tmp_path, stdout, "debate", "Which?", *TWO, variables=variables)
    lines = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert lines[-1] == (
        f"parley: stdout cannot be written to: {why}; redirect it to a file or a terminal that can"
    )
    (saved,) = [line for line in lines if line.startswith("Saved debate")]
    shown = Command(["show", saved.split()[2].rstrip(";")], tmp_path).end()
    assert shown.code == 0
    assert "completed" in shown.out


def test_64_file_descriptors_are_enough_for_a_debate(tmp_path: Path) -> None:
    with models() as url:
        variables: dict[str, str] = {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"}
        ended = parley(tmp_path, "ulimit -n 64; COMMAND", "debate", "Which?", *TWO, variables=variables)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
