"""A word to a person while something starts slowly."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from parley.cli.printing import erase_line, say_text
from parley.cli.terminal.capability import can_redraw

__all__ = ["announce_slow_start"]

_SILENT_SECONDS: Final = 1.0


@contextmanager
def announce_slow_start(*, told: bool = True) -> Iterator[None]:
    """Say `starting…` on stderr where the block takes longer than a second.

    On a terminal it is gone afterwards; elsewhere it is said only if `told`.
    """
    in_place = can_redraw(sys.stderr)
    said = threading.Event()

    def announce() -> None:
        if in_place or told:
            said.set()
            say_text("starting…" if in_place else "starting…\n")

    # A thread of its own: what starts keeps the event loop busy with imports.
    timer = threading.Timer(_SILENT_SECONDS, announce)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if in_place and said.is_set():
            erase_line()
