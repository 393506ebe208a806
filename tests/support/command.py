"""The `parley` command as a process, with an environment of its own: a fork of one that has imported it, or a start of Python."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tests.support.warm_process import Job
from tests.support.warm_start import COMMAND, WarmStart

_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: list[str]


@dataclass
class Command:
    """A command that runs in `folder`, with its data there and without any key of the machine's.

    Attributes:
        new_python: Whether Python is started for it, which takes a second of the processor.
    """

    arguments: Sequence[str]
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    new_python: bool = False
    without_stdin: bool = False
    started: ClassVar[list["Command"]] = []

    def __post_init__(self) -> None:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PARLEY_", "OPENAI_", "OPENROUTER_", "OTEL_"))
        }
        variables = {
            **kept,
            "PARLEY_STORE": f"sqlite:///{self.folder / 'data'}",
            "PARLEY_LOCAL_SERVERS": "off",
            "PARLEY_TRUST_CONFIG": "true",
            **self.variables,
        }
        (out, their_out), (err, their_err) = os.pipe(), os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        self.process: subprocess.Popen[bytes] | WarmStart
        try:
            if self.new_python:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", COMMAND, *self.arguments],
                    cwd=self.folder,
                    env=variables,
                    stdin=nothing,
                    stdout=their_out,
                    stderr=their_err,
                )
            else:
                job = Job(
                    COMMAND, [*self.arguments], variables, str(self.folder), without_stdin=self.without_stdin
                )
                self.process = WarmStart(job, [nothing, their_out, their_err])
        finally:
            for each in (nothing, their_out, their_err):
                os.close(each)
        self._err: list[str] = []
        self._out: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in ((err, self._err), (out, self._out))
        ]
        for reader in self._readers:
            reader.start()
        self.started.append(self)

    @classmethod
    def kill_all(cls, after: int = 0) -> None:
        """Kill what a failed test left running: all commands but the first `after`."""
        while len(cls.started) > after:
            cls.started.pop().process.kill()

    def wait_for(self, text: str) -> None:
        """Wait until stderr or stdout has a line with `text`."""
        ends = time.monotonic() + _SECONDS
        while not any(text in line for line in (*self._err, *self._out)):
            assert time.monotonic() < ends, f"{text!r} was not said; stderr: {self._err}, stdout: {self._out}"
            assert self.process.poll() is None or any(reader.is_alive() for reader in self._readers), (
                f"ended with {self.process.returncode} before it said {text!r}; stderr: {self._err}"
            )
            time.sleep(0.02)

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        self.process.send_signal(number)

    def end(self) -> Ended:
        """Wait until it has ended."""
        try:
            code = self.process.wait(_SECONDS)
        finally:
            self.process.kill()
            for reader in self._readers:
                reader.join(10)
        assert not any("Traceback" in line for line in self._err), "".join(self._err)
        return Ended(code, "".join(self._out), [line.rstrip("\n") for line in self._err])

    @staticmethod
    def _read(stream: int, lines: list[str]) -> None:
        with open(stream) as file:
            for line in file:
                lines.append(line)  # noqa: PERF402 (line by line, as they come)
