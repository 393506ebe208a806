"""Processes of a system under chaos, and the nurseries that fork them, each with its own code."""

import atexit
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.chaos.process import Start

ROOT: Final = Path(__file__).parents[2]
"""The folder of this code."""


@dataclass
class Process:
    """One service: how it is started, and the process that is it now."""

    module: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    port: int
    output: Path
    pid: int = 0
    handle: int = -1
    armed: bool = False
    stopped: float | None = None


def environment() -> dict[str, str]:
    """Return the variables a process gets beside its own: no setting and no key of whoever runs the suite."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PARLEY_", "OPENAI_", "OPENROUTER_", "OTEL_"))
    }


class Nursery:
    """A process that has imported all services of one version of the code, and forks itself to run one."""

    def __init__(self, code: Path) -> None:
        """Start it on the code of a folder."""
        path = os.pathsep.join(str(each) for each in (code / "services", code))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.process", str(os.getpid())],
            cwd=code,
            env=environment() | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._asking = threading.Lock()

    def fork(self, start: Start) -> int:
        """Run a process; return its id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._asking:
            self._process.stdin.write(start.to_line())
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        assert answer, "the nursery ended; what it wrote on stderr says why"
        return int(answer)

    def close(self) -> None:
        """End it, and with it all that it has forked and still runs."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait(10)
        self._process.stdin.close()
        self._process.stdout.close()


@cache
def share_nursery(code: Path) -> Nursery:
    """Return the one nursery of all systems with the code of a folder: its imports take seconds of the processor."""
    nursery = Nursery(code)
    atexit.register(nursery.close)
    return nursery


def wait_for_end(process: Process, within: float) -> bool:
    """Wait that many seconds for a process to end; tell whether it has."""
    if process.handle < 0:
        return True
    poll = select.poll()
    poll.register(process.handle, select.POLLIN)
    if not poll.poll(within * 1000):
        return False
    os.close(process.handle)
    process.handle = -1
    return True


def end(process: Process) -> None:
    if process.handle >= 0:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process.handle, signal.SIGKILL)
        assert wait_for_end(process, 10), f"process {process.pid} does not die"
