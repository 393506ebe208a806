"""What a person sees while make installs Parley: what is installed, by whom, and what pip says if it fails."""

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.guides import ROOT

PIP: Final = """#!/bin/sh
echo "$*" >>pip.log
echo "Collecting much"
echo "WARNING: Location is ignored" >&2
case "$*" in *{fails_at}*) exit 7; esac
"""
"""A Python whose pip says much and fails if its arguments hold a word."""


def make_setup(
    folder: Path, *, fails_at: str, target: str = "setup", uv: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `make setup` in a checkout with a new environment, in which pip is a stub, and uv too if its program is given."""
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PIP.format(fails_at=fails_at), encoding="utf-8")
    python.chmod(0o755)
    (folder / ".venv" / ".made").touch()
    if uv:
        (python.parent / "uv").write_text(f'#!/bin/sh\necho "$*" >>uv.log\n{uv}\n', encoding="utf-8")
        (python.parent / "uv").chmod(0o755)
    for each in ("Makefile", "charts", "pyproject.toml", "requirements"):
        (folder / each).symlink_to(ROOT / each)
    # These tests may run below another make, to which this one would belong.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", target], cwd=folder, env=own, capture_output=True, text=True, timeout=60, check=False
    )


def test_an_installation_that_works_is_one_line(tmp_path: Path) -> None:
    done = make_setup(tmp_path, fails_at="nothing")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "Installing into .venv (once, a minute or two)\n"
    locked, own = (tmp_path / "pip.log").read_text(encoding="utf-8").splitlines()
    assert "--require-hashes --requirement requirements/run.txt" in locked
    assert "--editable ." in own


@pytest.mark.parametrize("fails_at", ["run.txt", "--editable"])
def test_an_installation_that_fails_shows_all_that_pip_said_and_its_code(
    fails_at: str, tmp_path: Path
) -> None:
    done = make_setup(tmp_path, fails_at=fails_at)
    assert done.returncode == 2
    installing, *said, last = done.stderr.splitlines()
    assert installing.startswith("Installing")
    assert said == ["Collecting much", "WARNING: Location is ignored"]
    assert "Error 7" in last
    assert not (tmp_path / ".venv" / ".run").exists()


def test_tools_are_installed_by_the_uv_of_the_lock_and_only_with_the_hashes_of_the_lock(
    tmp_path: Path,
) -> None:
    done = make_setup(tmp_path, fails_at="nothing", target="setup-dev", uv="exit 0")
    assert (done.returncode, done.stdout) == (0, "")
    (first,) = (tmp_path / "pip.log").read_text(encoding="utf-8").splitlines()
    assert "--require-hashes --requirement .venv/uv.txt" in first
    pinned = (tmp_path / ".venv" / "uv.txt").read_text(encoding="utf-8")
    assert pinned.startswith("uv==")
    assert pinned.count("==") == 1
    assert "--hash=sha256:" in pinned
    installed, own = (tmp_path / "uv.log").read_text(encoding="utf-8").splitlines()
    assert "--only-binary :all: --require-hashes --requirement requirements/all.txt" in installed
    assert "--no-build-isolation --editable ." in own


def test_pip_installs_the_tools_and_parley_if_uv_cannot(tmp_path: Path) -> None:
    done = make_setup(tmp_path, fails_at="nothing", target="setup-dev", uv="echo no network >&2; exit 2")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "Installing into .venv, tools too (once, a minute or two)\n"
    _, locked, own = (tmp_path / "pip.log").read_text(encoding="utf-8").splitlines()
    assert "--require-hashes --requirement requirements/all.txt" in locked
    assert "--no-build-isolation --editable ." in own
