"""One line for a person on stderr."""

import sys

from parley.cli.terminal.printable import printable_line

__all__ = ["say"]


def say(text: str, indent: str = "") -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"{indent}{printable_line(text)}\n")
    sys.stderr.flush()
