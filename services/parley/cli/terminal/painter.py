"""Draws a frame in place on a terminal, below lines that stay."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Self

from parley.cli.person import can_redraw
from parley.runtime.printable import printable_line

if TYPE_CHECKING:  # heavy: only a terminal needs it
    from rich.console import RenderableType
    from rich.live import Live

Frame = Callable[[int, int], "RenderableType"]
"""Returns the picture for a terminal of this width and height."""

_SECONDS: Final = 1 / 8
"""From one picture to the next, at least."""

_BEGIN_UPDATE: Final = b"\x1b[?2026h"
_END_UPDATE: Final = b"\x1b[?2026l"
"""Terminals that know them show the output between them at once; others ignore them."""
_WRAP_OFF: Final = b"\x1b[?7l"
_WRAP_ON: Final = b"\x1b[?7h"
_CURSOR_ON: Final = b"\x1b[?25h"


def restore_terminal() -> None:
    """Restore the terminal, for an exit that does not leave the blocks that do."""
    if sys.__stderr__ is not None and can_redraw(sys.__stderr__):
        _write(_END_UPDATE + _WRAP_ON + _CURSOR_ON + b"\r\n")


class Painter:
    """Draws in a thread of its own, so that a blocked terminal, as after Ctrl-S, blocks nothing else.

    Line wrap is off while it draws: if the terminal shows a character wider than expected, a line is cut rather than
    wrapped, and the frame keeps its height.

    Attributes:
        frame: What it draws.
    """

    def __init__(self, frame: Frame) -> None:
        """Draw this once the block is entered."""
        from rich.console import Console

        self.frame = frame
        self._console: Console = Console(stderr=True)
        self._live: Live
        self._lines: deque[str] = deque()
        self._drawn: list[int] = []
        self._lock = threading.Lock()
        self._aside = False
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="painter", daemon=True)

    def __enter__(self) -> Self:
        self._start_live()
        with suppress(
            NotImplementedError, RuntimeError, ValueError
        ):  # no loop runs, or not in the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGTSTP, self._suspend)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTSTP)
        self._leaving.set()
        self._thread.join()
        with suppress(OSError):  # the terminal is gone
            self._print_lines()
        with suppress(OSError):
            self._stop_live()

    def say(self, text: str) -> None:
        """Print one line above the frame; it stays."""
        self._lines.append(text)

    @contextmanager
    def release_terminal(self) -> Iterator[None]:
        """Leave the terminal to the block; lines printed while it runs appear after it."""
        with self._lock:
            self._print_lines()
            self._stop_live()
            self._aside = True
        try:
            yield
        finally:
            with self._lock:
                self._aside = False
                self._start_live()

    def _run(self) -> None:
        while not self._leaving.wait(_SECONDS):
            try:
                with self._lock:
                    if not self._aside:
                        self._clear_after_resize()
                        self._print_lines()
                        self._draw()
            except OSError:  # the terminal is gone; the debate is not
                return

    def _draw(self) -> None:
        _write(_BEGIN_UPDATE)
        try:
            self._live.refresh()
        finally:
            _write(_END_UPDATE)

    def _start_live(self) -> None:
        from rich.live import Live

        _write(_WRAP_OFF)
        self._live = Live(
            get_renderable=self._render,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            vertical_overflow="crop",
        )
        self._live.start()

    def _stop_live(self) -> None:
        self._live.stop()
        _write(_WRAP_ON)

    def _print_lines(self) -> None:
        from rich.text import Text

        if not self._lines:
            return
        _write(_WRAP_ON)  # a command in a wrapped line can be copied whole
        while self._lines:
            self._console.print(Text(printable_line(self._lines.popleft())), soft_wrap=True)
        _write(_WRAP_OFF)

    def _render(self) -> "RenderableType":
        from rich.segment import Segment, SegmentLines

        size = self._console.size
        options = self._console.options.update(width=size.width)
        lines = self._console.render_lines(self.frame(size.width, size.height), options, pad=False)
        lines = lines[: max(size.height - 1, 1)]
        self._drawn = [Segment.get_line_length(line) for line in lines]
        return SegmentLines(lines, new_lines=True)

    def _clear_after_resize(self) -> None:
        """Erase lines that wrapped because the terminal became narrower."""
        width = self._console.size.width
        added = sum(max(-(-each // width) - 1, 0) for each in self._drawn)
        if added:
            self._stop_live()
            _write(f"\x1b[{added}A\r\x1b[J".encode())
            self._start_live()

    def _suspend(self) -> None:
        """Restore the terminal while the process is stopped by Ctrl-Z."""
        with self._lock:
            if not self._aside:
                self._stop_live()
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(0)  # the signal is taken here; what follows comes after `fg`
            if not self._aside:
                self._start_live()


def _write(codes: bytes) -> None:
    with suppress(OSError):
        sys.stderr.flush()
        os.write(2, codes)
