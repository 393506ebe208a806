"""A stream for what may be lost: a line that cannot be written never reaches the code that says it."""

from contextlib import suppress
from typing import Any, TextIO

__all__ = ["LossyStream"]


class LossyStream:
    """Passes on to a text stream; what a closed pipe or a full disk refuses is dropped, and the next line tried again."""

    def __init__(self, stream: TextIO) -> None:
        """Stand before `stream`."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        with suppress(OSError, ValueError):  # ValueError: it is closed
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Hand on what was written, or leave it."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Return whether a person may be looking."""
        try:
            return self._stream.isatty()
        except ValueError:
            return False

    def __getattr__(self, name: str) -> Any:
        """Be the stream in all else."""
        return getattr(self._stream, name)
