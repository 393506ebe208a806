"""The wheel that `make wheel` builds: all that a command needs is in it, and it can be installed."""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from tests.support.guides import ROOT

SECONDS: Final = 170
SOURCES: Final = ROOT / "services"


def run(*command: str | Path, folder: Path, **variables: str) -> str:
    """Run a command that has to end well, and return its stdout."""
    # These tests may run below another make, to which this one would belong.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**own, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the environment of the tests, in which make has nothing to install."""
    folder = tmp_path_factory.mktemp("checkout")
    for each in (
        "LICENSE",
        "Makefile",
        "README.md",
        "THIRD_PARTY.md",
        "charts",
        "pyproject.toml",
        "requirements",
    ):
        (folder / each).symlink_to(ROOT / each)
    shutil.copytree(SOURCES, folder / "services", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    (folder / ".venv").mkdir()
    for each in ("bin", "lib", "pyvenv.cfg"):
        (folder / ".venv" / each).symlink_to(Path(sys.prefix) / each)
    (folder / ".venv" / ".made").touch()
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: Path) -> Path:
    leftover = checkout / "build" / "lib" / "parley" / "removed.py"
    leftover.parent.mkdir(parents=True)
    leftover.touch()
    built = checkout / run("make", "wheel", folder=checkout).strip()
    assert [built] == [*(checkout / "dist").iterdir()]
    return built


def test_the_wheel_holds_all_files_of_the_package_and_no_other(wheel: Path) -> None:
    ours = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.joinpath("parley").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    with ZipFile(wheel) as opened:
        held = {name for name in opened.namelist() if ".dist-info/" not in name}
    assert held == ours
    for name in (
        "py.typed",
        "config/schema.json",
        "example/debate.log",
        "gateway/local_model/catalogue.py",
        "gateway/routing/prices.json",
        "orchestrator/roles/architect.md",
        "v1/orchestrator_pb2.pyi",
    ):
        assert f"parley/{name}" in held


def test_the_same_checkout_gives_the_same_wheel(wheel: Path, checkout: Path) -> None:
    first = hashlib.sha256(wheel.read_bytes()).hexdigest()
    for path in (checkout / "services").rglob("*.py"):
        path.touch()
    run("make", "wheel", folder=checkout)
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == first


def test_the_command_runs_from_an_environment_that_holds_the_wheel(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "new", with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / "new")]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel), folder=tmp_path)
    variables = {"PYTHONPATH": sysconfig.get_path("purelib"), "HOME": str(tmp_path)}
    python, command = (tmp_path / "new" / "bin" / each for each in ("python", "parley"))
    place = run(python, "-P", "-c", "import parley; print(parley.__file__)", folder=tmp_path, **variables)
    assert Path(place.strip()).is_relative_to(tmp_path / "new"), "the checkout is not what is tried"
    assert (
        run(python, "-P", "-m", "parley.cli", "--version", folder=tmp_path, **variables) == "parley 0.1.0\n"
    )
    assert run(command, "demo", folder=tmp_path, **variables).startswith("Record the payment before")
