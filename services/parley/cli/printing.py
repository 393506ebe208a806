"""Writing to stdout and stderr. All output passes here, or through rich in `terminal/`, and is made printable first.

Most output contains text of models, clients, endpoints and files, so no other module writes to a stream directly.
"""

import os
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import Final, Literal, TextIO, get_args

from parley.cli.command_name import command_name
from parley.runtime.printable import printable, printable_line


def print_line(text: str) -> None:
    """Write the text to stdout as one line, with its spaces."""
    sys.stdout.write(f"{_join_lines(text)}\n")


def print_field(line: str) -> None:
    """Write a line of a name and its value to stdout; a terminal gets it wrapped between words, below the value.

    A line with a command stays whole, so that the command can be copied.
    """
    line, width = _join_lines(line), _terminal_width(sys.stdout)
    is_whole = width <= _MIN_WIDTH or f" {command_name()} " in line
    for each in [line] if is_whole else _wrap(line, width, " " * _FIELD_WIDTH):
        sys.stdout.write(f"{each}\n")


_FIELD_WIDTH: Final = 11
"""Columns of the name in front of a value."""


def print_text(text: str) -> None:
    """Write text to stdout, with its lines and spaces; no line end is added."""
    sys.stdout.write(printable(text))


def say(text: str) -> None:
    """Write one line to stderr, with the spaces that it begins with; a terminal gets it wrapped between words."""
    for line in wrap_line(text, _terminal_width(sys.stderr)):
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


_MIN_WIDTH: Final = 20


def wrap_line(text: str, width: int) -> Sequence[str]:
    """Return one line in lines of a width, wrapped between words; 0: unchanged.

    A command at its end stays whole, so that it can be copied: it stands on a line of its own if it has no room behind the words.
    """
    indent = text[: len(text) - len(text.lstrip(" "))]
    line = f"{indent}{printable_line(text)}"
    if len(line) <= width or width < _MIN_WIDTH:
        return [line]
    command = re.search(rf"(?<=[:;]) {re.escape(command_name())} .*", line)
    words = line[: command.start()] if command else line
    lines = _wrap(words, width, f"{indent}  ")
    if command is None:
        return lines
    last = lines[-1] + command[0]
    return [*lines[:-1], last] if len(last) <= width else [*lines, f"{indent} {command[0]}"]


def _wrap(line: str, width: int, indent: str) -> list[str]:
    """Return the line in lines of a width, wrapped between words; all but the first are indented."""
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _terminal_width(stream: TextIO) -> int:
    """Return the columns of the terminal that the stream is; 0: it is none."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def say_text(text: str) -> None:
    """Write text to stderr, with its lines and spaces; no line end is added."""
    sys.stderr.write(printable(text))
    sys.stderr.flush()


def say_line(text: str) -> None:
    """Write one line to stderr as `print_line` does to stdout."""
    say_text(f"{_join_lines(text)}\n")


def _join_lines(text: str) -> str:
    return printable(text).replace("\n", " ").replace("\t", " ")


def erase_line() -> None:
    """Erase the terminal's last line."""
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


Style = Literal["live", "lines", "none"]
"""In place with a panel per agent; one line per event; not at all."""

STYLES: Final[tuple[Style, ...]] = get_args(Style)
