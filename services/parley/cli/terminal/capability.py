"""What can be done with a stream: whether it is a terminal on which lines can be styled and written over."""

import os
from typing import TextIO

__all__ = ["can_redraw"]


def can_redraw(stream: TextIO) -> bool:
    """Return whether the stream is a terminal that knows more than plain lines."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in {"", "dumb", "unknown"}
