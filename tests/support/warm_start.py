"""Starts of programs in no time: forks of a process that has imported them, with streams, environment and folder of their own.

It is the same code with the same output and exit code. A test that is about how Python starts, or about an interrupt while it does,
starts Python itself.
"""

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.warm_process import Job

__all__ = ["COMMAND", "GATEWAY", "MODEL_SERVER", "WarmStart"]

COMMAND: Final = "parley.cli"
GATEWAY: Final = "parley.gateway"
MODEL_SERVER: Final = "tests.support.model_server"
_SERVICES: Final = tuple(
    f"parley.{each}" for each in ("orchestrator", "gateway", "convergence", "ratings", "memory")
)
_IMPORTED: Final = (COMMAND, "parley.client")
_IMPORTED_BY_A_SYSTEM: Final = (
    *_IMPORTED,
    *(f"{each}.__main__" for each in _SERVICES),
    "parley.local",
    "tests.support.first_use",
    MODEL_SERVER,
)
_ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 90.0
_one_at_a_time: Final = threading.Lock()


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
    return _IMPORTED if job.module == COMMAND and is_alone else _IMPORTED_BY_A_SYSTEM


def _send(jobs: socket.socket, line: bytes, descriptors: list[int]) -> None:
    sent = socket.send_fds(jobs, [line], descriptors)
    jobs.sendall(line[sent:])


@cache
def _warm(modules: Sequence[str]) -> socket.socket:
    """Start a process that forks; it ends when this one does."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm_process", str(theirs.fileno()), *modules],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    atexit.register(_end, ours, process)
    return ours


def _end(jobs: socket.socket, process: subprocess.Popen[bytes]) -> None:
    jobs.close()
    process.wait()
