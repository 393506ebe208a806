"""The terminal's user: whether there is one, and what they type after a prompt."""

import os
import select
import sys
import termios
from typing import Final, TextIO

from parley.cli.printing import say, say_text

_MAX_BYTES: Final = 4096
"""A terminal reads no more of one line; it drops the rest."""


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether the stream is a terminal; it is None if it was closed before the start."""
    return stream is not None and not stream.closed and stream.isatty()


def can_ask() -> bool:
    """Return whether the user can be asked: both stderr and stdin are a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def discard_input() -> None:
    """Discard what was typed so far, unless the terminal is that of another process, which would stop this one."""
    if is_terminal(sys.stdin) and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def read_input() -> str | None:
    """Return the text typed up to Enter, or several lines that were pasted together; None for Ctrl-D.

    Wait without a thread, so that the task can be cancelled at any time.
    """
    import asyncio  # help needs none of it

    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, readable.set)
    text = b""
    try:
        while True:
            await readable.wait()
            readable.clear()
            piece = os.read(descriptor, _MAX_BYTES)
            text += piece
            if not piece or (text.endswith(b"\n") and not _has_more(descriptor)):
                return text.decode(errors="replace") if text else None
    finally:
        loop.remove_reader(descriptor)


def _has_more(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def can_redraw(stream: TextIO) -> bool:
    """Return whether the stream is a terminal on which lines can be styled and overwritten."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in {"", "dumb", "unknown"}


_MAX_ANSWER_BYTES: Final = 8 * 1024
_MAX_LINE_BYTES: Final = 4095
"""A terminal keeps no more of a line, its end included; the rest is lost."""


async def ask(asked: str) -> str | None:
    """Print the question, if it is not empty, and return the answer, which may be empty; None for Ctrl-D."""
    if asked:
        say(asked)
    while True:
        say_text("> ")
        text = None
        try:
            text = await read_input()
        finally:
            if text is None:  # Ctrl-D, or cancelled: the next output begins a line
                say_text("\n")
        if text is None:
            return None
        if any(len(line.encode()) >= _MAX_LINE_BYTES for line in text.split("\n")):
            say("A terminal cannot read such a long line; break it into several and paste them together.")
        elif len(text.encode()) > _MAX_ANSWER_BYTES:
            say("That is more than 8 KiB; use fewer words.")
        else:
            return text.strip()
