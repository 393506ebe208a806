"""The `parley` command as a process, with an environment of its own."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, ClassVar

__all__ = ["Command", "Ended"]

_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: list[str]


@dataclass
class Command:
    """A command that runs in `folder`, with its data there and without any key of the machine's."""

    arguments: Sequence[str]
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    started: ClassVar[list["Command"]] = []

    def __post_init__(self) -> None:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PARLEY_", "OPENAI_", "OPENROUTER_", "OTEL_"))
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "parley.cli", *self.arguments],
            cwd=self.folder,
            env={
                **kept,
                "PARLEY_STORE": f"sqlite:///{self.folder / 'data'}",
                "PARLEY_LOCAL_SERVERS": "off",
                "PARLEY_TRUST_CONFIG": "true",
                **self.variables,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._err: list[str] = []
        self._out: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stderr, self._err), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stdout, self._out), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        self.started.append(self)

    @classmethod
    def kill_all(cls) -> None:
        """Kill what a failed test left running."""
        while cls.started:
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
        assert not any("Traceback" in line for line in self._err)
        return Ended(code, "".join(self._out), [line.rstrip("\n") for line in self._err])

    @staticmethod
    def _read(stream: IO[str] | None, lines: list[str]) -> None:
        assert stream is not None
        for line in stream:
            lines.append(line)  # noqa: PERF402 (line by line, as they come)
