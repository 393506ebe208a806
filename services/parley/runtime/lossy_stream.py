"""A text stream whose write errors are ignored: the code that logs never sees them."""

from contextlib import suppress
from typing import Any, TextIO


class LossyStream:
    """Writes to a text stream. A line that a closed pipe or a full disk refuses is dropped; the next line is tried again."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        with suppress(OSError, ValueError):  # ValueError: it is closed
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, or ignore the error."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Return whether a person may be looking."""
        try:
            return self._stream.isatty()
        except ValueError:
            return False

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the stream."""
        return getattr(self._stream, name)
