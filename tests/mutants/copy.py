"""A copy of the project in which code is changed, so that nobody's own files are."""

import contextlib
import importlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Final

import pytest

_FORK: Final = multiprocessing.get_context("fork")
_SLOW: Final = (
    "aiohttp.web",
    "grpc.aio",
    "hypothesis.stateful",
    "numpy",
    "openai",
    "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk.metrics",
    "pydantic_settings",
    "pymongo",
    "pytest_asyncio",
    "pytest_cov",
    "structlog",
)


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of tests: whether all were green, what it printed, and how long it took."""

    green: bool
    told: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Copy:
    """All files of the project that git knows, as they are now, in a folder of their own."""

    folder: Path

    @classmethod
    def of(cls, project: Path, folder: Path) -> "Copy":
        """Make it anew."""
        shutil.rmtree(folder, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=project,
            check=True,
            capture_output=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (project / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(project / name, folder / name)
        return cls(folder)

    def run(self, arguments: Sequence[str], *, seconds: float) -> Ran:
        """Run pytest until a test fails; what takes longer than `seconds` is stopped, with its processes, and is not green."""
        begun = time.monotonic()
        with tempfile.TemporaryFile("w+", errors="replace") as told:
            child = _FORK.Process(target=_pytest, args=(self.folder, arguments, told.fileno()))
            child.start()
            child.join(seconds)
            if child.is_alive():
                told.write(f"not over after {seconds:.0f} s")
            _stop_all(child)
            told.seek(0)
            return Ran(child.exitcode == 0, told.read(), time.monotonic() - begun)


def warm_up() -> None:
    """Import what is not ours and slow, so that a child need not: it is forked before any of it does anything."""
    for name in _SLOW:
        importlib.import_module(name)


def _pytest(folder: Path, arguments: Sequence[str], told: int) -> None:
    os.setsid()
    os.chdir(folder)
    os.dup2(told, 1)
    os.dup2(told, 2)
    os.environ |= {"PYTHONPATH": str(folder / "services"), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(folder), str(folder / "services")]
    for name in [each for each in sys.modules if each.partition(".")[0] in {"parley", "tests"}]:
        del sys.modules[name]
    sys.stdout.flush()
    os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *arguments]))


def _stop_all(child: ForkProcess) -> None:
    """Stop a process and what it started: it leads a group of its own."""
    assert child.pid is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.join()
