"""Writing to stdout and stderr. All output passes here, or through rich in `terminal/`, and is made printable first.

Most output contains text of models, clients, endpoints and files, so no other module writes to a stream directly.
"""

import sys
from typing import Final, Literal, get_args

from parley.runtime.printable import printable, printable_line


def print_line(text: str) -> None:
    """Write the text to stdout as one line, with its spaces."""
    sys.stdout.write(f"{_one_line(text)}\n")


def print_text(text: str) -> None:
    """Write text to stdout, with its lines and spaces; no line end is added."""
    sys.stdout.write(printable(text))


def say(text: str, indent: str = "") -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"{indent}{printable_line(text)}\n")
    sys.stderr.flush()


def say_text(text: str) -> None:
    """Write text to stderr, with its lines and spaces; no line end is added."""
    sys.stderr.write(printable(text))
    sys.stderr.flush()


def say_line(text: str) -> None:
    """Write one line to stderr as `print_line` does to stdout."""
    say_text(f"{_one_line(text)}\n")


def _one_line(text: str) -> str:
    return printable(text).replace("\n", " ").replace("\t", " ")


def erase_line() -> None:
    """Erase the terminal's last line."""
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


Style = Literal["live", "lines", "none"]
"""In place with a panel per agent; one line per event; not at all."""

STYLES: Final[tuple[Style, ...]] = get_args(Style)
