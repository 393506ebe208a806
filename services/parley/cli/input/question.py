"""The question, from the command line, from stdin or from a file."""

import sys
from pathlib import Path
from typing import Final

from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.person import is_terminal
from parley.cli.printing import say

STDIN: Final = "-"
"""The question that means: read it from stdin."""

_OPTION = "--problem-description"
_MAX_BYTES: Final = 256 * 1024
"""The orchestrator's limit, which it says in the same words. An endless stream on stdin is refused by it, too."""
_LINE_END_BYTES: Final = len(b"\r\n")
"""What an editor or `echo` puts behind the question does not count."""


def read_question(text: str | None, path: Path | None) -> str:
    """Return the question from exactly one of both: the text trimmed, or the file's text unchanged.

    `-` means the text on stdin; so does no question at all if stdin is a pipe or a file.
    """
    if text is not None and path is not None:
        raise CommandError(f"give a question or {_OPTION} {path}, not both", INVALID_ARGUMENTS)
    if path is not None:
        return _read_file(path)
    if text == STDIN or (text is None and not is_terminal(sys.stdin)):
        given, where = _read_stdin(), "stdin has no question"
    else:
        given, where = (text or "").strip(), "the question is empty"
    if given:
        return given
    if text is None:
        raise CommandError(f"give a question, or a file with {_OPTION} FILE", INVALID_ARGUMENTS)
    raise CommandError(f"{where}; give one, or a file with {_OPTION} FILE", INVALID_ARGUMENTS)


def _read_stdin() -> str:
    """Return the text on stdin, trimmed; empty if stdin is closed."""
    if sys.stdin is None:
        return ""
    if is_terminal(sys.stdin):
        say("Type the question; Ctrl-D on a line of its own ends it.")
    try:
        most = _MAX_BYTES + _LINE_END_BYTES
        given = sys.stdin.buffer.read(most + 1)
        if len(given) > most or len(given.strip()) > _MAX_BYTES:
            raise CommandError("the question must be at most 256 KiB", INVALID_ARGUMENTS)
        return given.decode().strip()
    except UnicodeDecodeError:
        raise CommandError("the question on stdin is not UTF-8 text", INVALID_ARGUMENTS) from None
    except OSError as error:
        raise CommandError(f"stdin cannot be read: {error.strerror or error}", GENERAL) from None


def _read_file(path: Path) -> str:
    try:
        if not path.exists():
            raise CommandError(f"{_OPTION} {path}: there is no such file", INVALID_ARGUMENTS)
        if not path.is_file():
            raise CommandError(f"{_OPTION} {path}: is not a file", INVALID_ARGUMENTS)
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        raise CommandError(f"{_OPTION} {path}: is not UTF-8 text", INVALID_ARGUMENTS) from None
    except OSError as error:
        raise CommandError(f"{_OPTION} {path}: cannot be read: {error.strerror or error}", GENERAL) from None
    if not text.strip():
        raise CommandError(f"{_OPTION} {path}: is empty", INVALID_ARGUMENTS)
    return text
