"""Whether a person sits before the command, and what they type."""

import asyncio
import os
import select
import sys
import termios
from typing import Final, TextIO

__all__ = ["can_ask", "discard_input", "is_terminal", "read_input"]

_MAX_BYTES: Final = 4096
"""What a terminal takes of one line; it drops the rest."""


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether the stream is a terminal; Python has none where it was closed before the start."""
    return stream is not None and not stream.closed and stream.isatty()


def can_ask() -> bool:
    """Return whether somebody at a terminal can be asked: they see stderr and type on stdin."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def discard_input() -> None:
    """Forget what was typed before it was asked for."""
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def read_input() -> str | None:
    """Return what is typed up to Enter, lines that were pasted together as one text; None for Ctrl-D.

    Wait without a thread, so that whoever waits can be cancelled at any moment.
    """
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
