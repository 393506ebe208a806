"""Starts of programs in no time: forks of a process that has imported them, with streams, environment and folder of their own.

It is the same code with the same output and exit code. A test that is about how Python starts, or about an interrupt while it does,
starts Python itself. All processes of a run of tests share what was imported.
"""

import atexit
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.warm_process import IMPORTED_ON_USE, Job, hold_turn

COMMAND: Final = "parley.cli"
GATEWAY: Final = "parley.gateway"
MODEL_SERVER: Final = "tests.support.model_server"
_SERVICES: Final = tuple(
    f"parley.{each}" for each in ("orchestrator", "gateway", "convergence", "ratings", "memory")
)
IMPORTED_BY_A_CLIENT: Final = (
    COMMAND,
    "parley.client",
    "parley.config",
    "parley.orchestrator.formats.panel",
    "rich.table",
    "tests.support.first_config",
)
"""What a command needs that only asks a server, with a configuration or without, or shows the example."""
_IMPORTED_BY_A_SYSTEM: Final = (
    *IMPORTED_BY_A_CLIENT,
    *(f"{each}.__main__" for each in _SERVICES),
    "parley.local",
    *IMPORTED_ON_USE,
    "tests.support.first_use",
    MODEL_SERVER,
)
_ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 300.0
_RELAY: Final = Path(__file__).with_name("warm_relay.py")
_one_at_a_time: Final = threading.Lock()
_started: Final[list[subprocess.Popen[bytes]]] = []


class WarmStart:
    """A program that runs, with what tests use of `subprocess.Popen`.

    Attributes:
        returncode: None until it is known that it has ended; below 0 if a signal ended it.
    """

    def __init__(self, job: Job, streams: Sequence[int]) -> None:
        """Start it on stdin, stdout and stderr."""
        self.pid = 0
        self.returncode: int | None = None
        self._args = [job.module, *job.arguments]
        self._read = b""
        self._status, theirs = os.pipe()
        try:
            with _one_at_a_time:
                _send(_warm(_imports(job)), job.to_line(), [*streams, theirs])
        finally:
            os.close(theirs)
        self.pid = self._next_number(_SECONDS)

    def poll(self) -> int | None:
        """Return the code if it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float = _SECONDS) -> int:
        """Wait until it has ended; return its code. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            self.returncode = self._next_number(timeout)
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def _next_number(self, timeout: float) -> int:
        ends = time.monotonic() + timeout
        while b"\n" not in self._read:
            if not select.select([self._status], [], [], max(ends - time.monotonic(), 0))[0]:
                raise subprocess.TimeoutExpired(self._args, timeout)
            piece = os.read(self._status, 64)
            assert piece, "the warm process ended; what it wrote on stderr says why"
            self._read += piece
        number, _, self._read = self._read.partition(b"\n")
        return int(number)


def _imports(job: Job) -> Sequence[str]:
    """Return what a program imports while it runs: a command that asks a server, or plays what was kept, needs no service."""
    is_alone = "--server" in job.arguments or "demo" in job.arguments
    return IMPORTED_BY_A_CLIENT if job.module == COMMAND and is_alone else _IMPORTED_BY_A_SYSTEM


def _send(jobs: socket.socket, line: bytes, descriptors: list[int]) -> None:
    sent = socket.send_fds(jobs, [line], descriptors)
    jobs.sendall(line[sent:])


@cache
def _warm(modules: Sequence[str], before: Sequence[str] = ()) -> socket.socket:
    """Connect to a process that forks, which is started if there is none; it ends when nobody is connected."""
    connection = socket.socket(socket.AF_UNIX)
    path = _path(modules, before)
    with hold_turn(path.parent):
        try:
            connection.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            _listen(path, modules, before)
            connection.connect(str(path))
    atexit.register(connection.close)
    return connection


def _path(modules: Sequence[str], before: Sequence[str]) -> Path:
    """Return where the process listens that has imported these modules for this run of tests."""
    folder = Path(tempfile.gettempdir(), f"parley-warm-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    return folder / f"{zlib.crc32(' '.join([run, str(_ROOT), *before, *modules]).encode()):08x}"


def _listen(path: Path, modules: Sequence[str], before: Sequence[str]) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        program = [sys.executable, "-m", "tests.support.warm_process"]
        _started.append(
            subprocess.Popen(
                [*before, *program, str(listener.fileno()), str(path), *modules],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )
        )


def list_command(
    *arguments: str,
    module: str = COMMAND,
    imports: Sequence[str] = _IMPORTED_BY_A_SYSTEM,
    before: Sequence[str] = (),
) -> list[str]:
    """Return a command line that does what `python -m MODULE` does, at once, for programs that start it themselves.

    Args:
        arguments: Those of the module.
        module: What runs; the command `parley` by default.
        imports: What is imported before; by default all that any service needs.
        before: The beginning of a command line that prepares the surroundings of what is forked.
    """
    _warm(tuple(imports), tuple(before))
    return [sys.executable, "-ISE", str(_RELAY), str(_path(imports, before)), module, *arguments]


def write_command(path: Path) -> None:
    """Write such a command as a file that can be run."""
    path.write_text(f'#!/bin/sh\nexec {shlex.join(list_command())} "$@"\n', encoding="utf-8")
    path.chmod(0o700)
