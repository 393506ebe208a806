"""The `parley` command on a terminal of its own, as a person sees it."""

import copy
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

import pyte

from tests.support.process_status import state_of
from tests.support.warm_process import Job
from tests.support.warm_start import COMMAND, WarmStart

CTRL_C = b"\x03"
CTRL_D = b"\x04"
_LINES = 40
_SECONDS = 180.0
"""How long something is waited for; a machine that is busy may take long to start the command."""

_PICTURE_BEGINS = b"\x1b[?2026h"
_PICTURE_ENDS = b"\x1b[?2026l"
"""What synchronized output stands between."""
_WRAPS = 7 << 5
"""How pyte keeps the private mode DECAWM."""


_SECOND_SCREEN = 1049
"""The private mode in which a terminal shows its second screen."""


class _Screen(pyte.Screen):
    """A screen with a second one, which is empty whenever it is shown."""

    def set_mode(self, *modes: int, **given: Any) -> None:
        if _SECOND_SCREEN in modes:
            self._first = (copy.deepcopy(self.buffer), self.cursor.x, self.cursor.y)
            self.erase_in_display(2)
        super().set_mode(*modes, **given)

    def reset_mode(self, *modes: int, **given: Any) -> None:
        super().reset_mode(*modes, **given)
        if _SECOND_SCREEN in modes:
            buffer, self.cursor.x, y = self._first
            gone = max(y - self.lines + 1, 0)  # the terminal has fewer lines by now
            self.buffer.clear()
            self.buffer.update({row - gone: line for row, line in buffer.items() if row >= gone})
            self.cursor.y = y - gone
            self.dirty.update(range(self.lines))


class Terminal(AbstractContextManager["Terminal"]):
    """The command in `folder`, with a terminal as stdin, stdout and stderr; it is killed when the block ends.

    Ctrl-C works as on any terminal.

    Attributes:
        theirs: The terminal as the command has it.
        shown: All that was written to the terminal, word for word.
        screen: What it looks like now.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        variables: Mapping[str, str],
        *,
        columns: int = 80,
        new_python: bool = False,
    ) -> None:
        """Start the command; `new_python`, by starting Python, which takes a second of the processor."""
        self._ours, self.theirs = pty.openpty()
        self.shown = b""
        self._undrawn = b""
        self.screen = _Screen(columns, _LINES)
        self._stream = pyte.ByteStream(self.screen)
        self._set_size(columns, _LINES)
        self.settings = termios.tcgetattr(self.theirs)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PARLEY_", "OPENAI_", "OPENROUTER_", "OTEL_"))
            and name not in {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
        }
        variables = {
            **kept,
            "PARLEY_STORE": f"sqlite:///{folder / 'data'}",
            "PARLEY_LOCAL_SERVERS": "off",
            **variables,
        }
        self.process: subprocess.Popen[bytes] | WarmStart
        if new_python:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _ON_ITS_TERMINAL, *arguments],
                cwd=folder,
                env=variables,
                stdin=self.theirs,
                stdout=self.theirs,
                stderr=self.theirs,
                start_new_session=True,
            )
        else:
            job = Job(COMMAND, [*arguments], variables, str(folder), on_terminal=True)
            self.process = WarmStart(job, [self.theirs] * 3)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self.theirs)

    @property
    def text(self) -> str:
        """What the screen shows, without what is blank at the ends of lines and below the last."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def written(self) -> str:
        """All that was written to the terminal."""
        return self.shown.decode(errors="replace").replace("\r\n", "\n")

    def type(self, typed: bytes) -> None:
        """Press keys."""
        os.write(self._ours, typed)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the terminal, of which the process is told."""
        self.screen.resize(lines, columns)
        self._set_size(columns, lines)
        self.process.send_signal(signal.SIGWINCH)

    def wait_for(self, *texts: str) -> None:
        """Wait until the screen shows all the texts at once."""
        self.wait_until(lambda screen: all(text in screen for text in texts))

    def wait_until(self, fits: Callable[[str], bool], seconds: float = _SECONDS) -> None:
        """Wait until the screen is as it should be."""
        ends = time.monotonic() + seconds
        while not fits(self.text):
            assert time.monotonic() < ends, f"is not shown: {self.text}"
            has_ended = (
                self.process.poll() is not None
            )  # before the look, so that its last words are not missed
            assert self.read() or not has_ended, f"ended: {self.text}"

    def wait_until_written(self, text: str, times: int = 1) -> None:
        """Wait until a text was written so many times, wherever it stands now."""
        self.wait_until(lambda _: self.written.count(text) >= times)

    def end(self, seconds: float = _SECONDS) -> int:
        """Wait until the command has ended; return its exit code."""
        ends = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < ends, f"does not end: {self.text}"
            self.read(0.1)
        while self.read(0.05):
            pass
        self._draw(whole_pictures=False)
        return self.process.wait()

    def wait_until_stopped(self) -> None:
        """Wait until the process is stopped: a signal to go on that comes before is lost (Linux only)."""
        ends = time.monotonic() + _SECONDS
        while state_of(self.process.pid) != "T":
            assert time.monotonic() < ends, "the process goes on"
            self.read()

    def wait_until_sane(self) -> None:
        """Wait until the terminal is as it was."""
        ends = time.monotonic() + _SECONDS
        while self._changed():
            assert time.monotonic() < ends, self._changed()
            self.read()

    def assert_sane(self) -> None:
        """Assert that the terminal is as it was: its cursor shown, its lines wrapped, its keys echoed."""
        assert self._changed() == [], (self._changed(), self.shown[-600:])

    def _changed(self) -> list[str]:
        now = {
            "the cursor is hidden": self.screen.cursor.hidden,
            "lines are not wrapped": _WRAPS not in self.screen.mode,
            "the settings differ": termios.tcgetattr(self.theirs) != self.settings,
        }
        return [what for what, is_so in now.items() if is_so]

    def read(self, seconds: float = 0.1) -> bool:
        """Take in what was written; return whether anything was."""
        readable, _, _ = select.select([self._ours], [], [], seconds)
        if not readable:
            return False
        piece = os.read(self._ours, 65536)
        self.shown += piece
        self._undrawn += piece
        self._draw(whole_pictures=True)
        return True

    def _draw(self, *, whole_pictures: bool) -> None:
        """Draw what was written. As terminals do, show a picture once it is whole: a busy reader would see only halves."""
        ready = len(self._undrawn)
        if whole_pictures:
            cut = next(
                (n for n in range(1, len(_PICTURE_BEGINS)) if self._undrawn.endswith(_PICTURE_BEGINS[:n])), 0
            )
            begins = self._undrawn.rfind(_PICTURE_BEGINS)
            ready = begins if begins > self._undrawn.rfind(_PICTURE_ENDS) else ready - cut
        self._stream.feed(self._undrawn[:ready])
        self._undrawn = self._undrawn[ready:]

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def on_terminal(
    arguments: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    *,
    typed: bytes = b"",
    columns: int = 80,
) -> tuple[int, str]:
    """Run the command to its end; return its code and all that was written to the terminal."""
    with Terminal(arguments, folder, variables, columns=columns) as terminal:
        terminal.type(typed)
        code = terminal.end()
        terminal.assert_sane()
        return code, terminal.written


_ON_ITS_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from parley.cli.__main__ import main
main()
"""
"""Makes the terminal that of its session, so that Ctrl-C is a signal, before the command runs."""
