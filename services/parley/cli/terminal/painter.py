"""Draws a picture on the terminal's second screen, which leaves no trace; lines that stay come on the first one afterwards."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar, Final, Self

from parley.cli.person import discard_input
from parley.cli.printing import say
from parley.runtime.printable import picture_text

if TYPE_CHECKING:  # heavy: only a terminal needs it
    from rich.console import RenderableType

Frame = Callable[[int, int], "RenderableType"]
"""Returns the picture for a terminal of this width and height; it leaves the last line free."""

_SECONDS: Final = 1 / 8
"""From one picture to the next, at least."""
_MAX_NOTICES: Final = 3
"""Lines of the picture for what was said last."""
_HEIGHT_OF_A_NOTICE: Final = 8
"""Lines of the terminal for each of them."""

_BEGIN_UPDATE: Final = "\x1b[?2026h"
_END_UPDATE: Final = "\x1b[?2026l"
"""Terminals that know them show the output between them at once; others ignore them."""
_ENTER: Final = "\x1b[?1049h\x1b[H\x1b[2J\x1b[?25l\x1b[?7l"
"""The second screen, empty, without a cursor. Without line wrap, a character wider than expected cuts its line and moves no other."""
_LEAVE: Final = "\x1b[H\x1b[2J\x1b[?7h\x1b[?1049l"
"""The same the other way round; a terminal without a second screen is empty afterwards."""
_CURSOR_ON: Final = "\x1b[?25h"
_HOME: Final = "\x1b[H"


class Painter:
    """Draws in a thread of its own, so that a blocked terminal, as after Ctrl-S, blocks nothing else.

    Attributes:
        frame: What it draws.
    """

    _active: ClassVar["Painter | None"] = None
    """The one that has the terminal."""

    def __init__(self, frame: Frame) -> None:
        """Draw this once the block is entered."""
        from rich.console import Console

        self.frame = frame
        self._console: Console = Console(stderr=True)
        self._unprinted: deque[str] = deque()
        self._latest: deque[str] = deque(maxlen=_MAX_NOTICES)
        self._lock = threading.Lock()
        self._aside = False
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="painter", daemon=True)

    def __enter__(self) -> Self:
        self._take_terminal()
        # no loop runs, or not in the main thread
        with suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTSTP, self._suspend)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTSTP)
        self._leaving.set()
        self._thread.join()
        with suppress(OSError):  # the terminal is gone
            self._return_terminal()

    def say(self, text: str) -> None:
        """Show one line below the picture, and print it once the picture is gone."""
        self._latest.append(text)
        self._unprinted.append(text)

    @contextmanager
    def release_terminal(self) -> Iterator[None]:
        """Leave the terminal to the block; lines that are said while it runs appear after it."""
        with self._lock:
            self._return_terminal()
            self._aside = True
        try:
            yield
        finally:
            with self._lock:
                self._aside = False
                self._take_terminal()

    def _run(self) -> None:
        while not self._leaving.wait(_SECONDS):
            try:
                with self._lock:
                    if not self._aside:
                        self._draw()
            except OSError:  # the terminal is gone; the debate is not
                return

    def _draw(self) -> None:
        width, height = self._console.size
        lines = self._picture(width, height)
        rows = zip_longest(range(1, height + 1), lines[:height], fillvalue="")
        drawn = "".join(f"\x1b[{row};1H\x1b[2K{line}" for row, line in rows)
        _write(f"{_BEGIN_UPDATE}{drawn}{_HOME}{_END_UPDATE}")

    def _picture(self, width: int, height: int) -> Sequence[str]:
        """Return the frame, and below it the lines that were said last, in rows as the terminal takes them."""
        from rich.segment import SegmentLines

        notices = self._notices(width, height)
        room = height - max(len(notices) - 1, 0)
        options = self._console.options.update(width=width)
        lines = self._console.render_lines(self.frame(width, room), options, pad=False)
        with self._console.capture() as caught:
            self._console.print(SegmentLines(lines, new_lines=True), end="", crop=False, soft_wrap=True)
        return [*caught.get().split("\n")[: room - 1], *notices]

    def _notices(self, width: int, height: int) -> Sequence[str]:
        """Return what was said last, the end of it where there is no room."""
        from rich.text import Text

        texts = [Text(" ".join(picture_text(each).split())) for each in tuple(self._latest)]
        rows = [row.plain for text in texts for row in text.wrap(self._console, width)]
        room = min(_MAX_NOTICES, height // _HEIGHT_OF_A_NOTICE)
        return rows[-room:] if room else ()

    def _take_terminal(self) -> None:
        Painter._active = self
        _write(_ENTER)

    def _return_terminal(self) -> None:
        """Show the first screen, with the lines that were said meanwhile."""
        discard_input()  # keys that were pressed at the picture are no answer to what comes next
        _write(f"{_END_UPDATE}{_LEAVE}")
        Painter._active = None
        while self._unprinted:
            say(self._unprinted.popleft())
        _write(_CURSOR_ON)

    def _suspend(self) -> None:
        """Restore the terminal while the process is stopped by Ctrl-Z."""
        with self._lock:
            if not self._aside:
                self._return_terminal()
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(0)  # the signal is taken here; what follows comes after `fg`
            if not self._aside:
                self._take_terminal()

    @classmethod
    def restore_terminal(cls) -> None:
        """Restore the terminal, for an exit that does not leave the blocks that do."""
        active = cls._active
        if active is not None:
            active._lock.acquire(timeout=_SECONDS)  # noqa: SLF001 (its own class), so that no picture comes afterwards
            with suppress(OSError):
                active._return_terminal()  # noqa: SLF001


def _write(codes: str) -> None:
    unwritten = codes.encode()
    with suppress(OSError):
        sys.stderr.flush()
        while unwritten:  # a signal ends a write to a full terminal before its end
            unwritten = unwritten[os.write(2, unwritten) :]
