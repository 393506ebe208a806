"""Processes of pytest that are forks of one that has collected."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PASSES = """
import os

def test_it_has_a_folder_and_an_output_of_its_own(tmp_path, capfd):
    (tmp_path / "mine").write_text(os.environ["PYTEST_XDIST_WORKER"])
    os.system("echo $PYTEST_XDIST_WORKER")
    assert capfd.readouterr().out.split() == [os.environ["PYTEST_XDIST_WORKER"]]
"""
FAILS = """
import os

def test_it_fails():
    os.system("echo in a child")
    assert [os.getppid(), 1] == [os.getppid(), 2]
"""
EXITS = """
import pytest

def pytest_runtest_call():
    pytest.exit("enough")
"""
BREAKS = """
import os

def pytest_runtest_logstart():
    assert "PYTEST_XDIST_WORKER" not in os.environ, "a mistake in a hook"
"""


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    options = ["-c", "pyproject.toml", "-p", "tests.conftest", "-p", "no:cacheprovider", "-n", "2"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--collect-once", "--dist", "loadfile", str(folder)],
        cwd=ROOT,
        env=outer,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_passes_fails_and_cannot_be_collected_is_reported_as_by_processes_that_collect(
    tmp_path: Path,
) -> None:
    for number in range(3):
        (tmp_path / f"test_passes_{number}.py").write_text(PASSES, encoding="utf-8")
    (tmp_path / "test_fails.py").write_text(FAILS, encoding="utf-8")
    (tmp_path / "test_broken.py").write_text("import no_such_module", encoding="utf-8")
    done = run(tmp_path)
    assert done.returncode == 1, done.stderr
    assert "No module named 'no_such_module'" in done.stdout
    assert "At index 1 diff: 1 != 2" in done.stdout
    assert done.stdout.count("in a child") == 1 + FAILS.count("in a child")
    assert done.stdout.splitlines()[-1].strip("= ").startswith("1 failed, 3 passed, 1 error in ")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("hooks", "said", "code"),
    [
        pytest.param(EXITS, "Interrupted: ", 2, id="a-test-ends-it"),
        pytest.param(BREAKS, "a mistake in a hook", 3, id="a-hook-raises"),
    ],
)
def test_a_run_whose_processes_end_before_their_tests_does_not_pass(
    tmp_path: Path, hooks: str, said: str, code: int
) -> None:
    (tmp_path / "conftest.py").write_text(hooks, encoding="utf-8")
    (tmp_path / "test_passes.py").write_text(PASSES, encoding="utf-8")
    done = run(tmp_path)
    assert said in done.stdout, done.stderr
    assert done.returncode == code
