"""The wheel that `make wheel` builds: all that a command needs is in it, and it can be installed."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen
from zipfile import ZipFile

import pytest

from tests.support.guides import ROOT
from tests.support.versions import read_version

SECONDS: Final = 550
"""An installation from the lock takes minutes on a machine that is busy."""
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


@dataclass(frozen=True)
class Stranger:
    """Somebody with an environment that the wheel was installed into, and an empty folder; without git, make or a compiler."""

    environment: Path
    folder: Path
    variables: Mapping[str, str]

    @property
    def command(self) -> Path:
        """The command `parley`."""
        return self.environment / "bin" / "parley"

    def run(self, *arguments: str) -> str:
        """Run `parley` and return what it prints."""
        return run(self.command, *arguments, folder=self.folder, **self.variables)


@pytest.fixture(
    params=["what the tests have", pytest.param("what the lock names", marks=pytest.mark.long)],
    scope="module",
)
def stranger(
    request: pytest.FixtureRequest, wheel: Path, models: str, tmp_path_factory: pytest.TempPathFactory
) -> Stranger:
    """With the packages of the tests' environment; or, for which a package index is needed, with those of the lock."""
    environment, folder = tmp_path_factory.mktemp("new"), tmp_path_factory.mktemp("empty")
    venv.create(environment, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(environment), "install", "--quiet", "--no-deps"]
    pip.append("--no-compile")  # a third of the modules is never imported here
    run(*pip, "--no-index", wheel, folder=folder)
    variables = {
        "HOME": str(folder),
        "OPENAI_BASE_URL": models,
        "PARLEY_MODEL": "test",
        "PARLEY_STORE": f"sqlite:///{folder / 'data'}",
        "PATH": str(environment / "bin"),
    }
    if request.param == "what the lock names":
        lock = ROOT / "requirements" / "run.txt"
        locked: list[str | Path] = ["--only-binary", ":all:", "--require-hashes", "--requirement", lock]
        run(*pip, *locked, folder=folder)
    else:
        variables["PYTHONPATH"] = sysconfig.get_path("purelib")
    return Stranger(environment, folder, variables)


def test_the_command_runs_from_an_environment_that_holds_the_wheel(stranger: Stranger) -> None:
    python = stranger.environment / "bin" / "python"
    place = run(
        python,
        "-P",
        "-c",
        "import parley; print(parley.__file__)",
        folder=stranger.folder,
        **stranger.variables,
    )
    assert Path(place.strip()).is_relative_to(stranger.environment), "the checkout is not what is tried"
    assert stranger.run("--version") == f"parley {read_version()}\n"
    assert "**Decision:** Record the payment before" in stranger.run("demo")


def test_it_holds_a_debate_runs_the_system_with_its_console_and_answers_an_mcp_client(
    stranger: Stranger, fixed_ports: None
) -> None:
    assert stranger.run("debate", "Which store?", "--agents", "architect,simplicity", "--rounds", "1").strip()
    with start(stranger, "up") as up:
        assert up.stdout is not None
        link = next(line.split()[1] for line in up.stdout if line.startswith("console "))
        with urlopen(link, timeout=SECONDS) as page:
            assert "<title>" in page.read().decode()
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "a", "version": "1"},
        }
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        with start(stranger, "mcp") as mcp:
            assert mcp.stdin is not None
            assert mcp.stdout is not None
            mcp.stdin.write(json.dumps(request) + "\n")
            mcp.stdin.flush()
            answer = json.loads(mcp.stdout.readline())
        assert answer["result"]["serverInfo"]["name"] == "parley"


@contextmanager
def start(stranger: Stranger, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `parley` until the block ends."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "OPENAI_"))}
    process = subprocess.Popen(
        [stranger.command, *arguments],
        cwd=stranger.folder,
        env={**own, **stranger.variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(SECONDS)
        finally:
            process.kill()
