"""One run of a command line: its errors as lines on stderr, and its exit code."""

import difflib
import errno
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from parley.cli.command_name import COMPLETION_VARIABLE, command_name
from parley.cli.errors import GENERAL, INTERRUPTED, INVALID_ARGUMENTS, CommandError
from parley.cli.printing import say
from parley.runtime.own_variables import set_own_variable

_OF_STDOUT: Final = frozenset({errno.EBADF, errno.ENOSPC, errno.EDQUOT, errno.EIO})
_NEAR: Final = 0.75
"""Similarity of two words, 0 to 1, from which on one is suggested for the other."""


def run(arguments: Sequence[str]) -> int:  # noqa: PLR0911 (a return an ending)
    """Run a command line and return its exit code; print errors to stderr."""
    set_own_variable("GRPC_VERBOSITY", "NONE")  # gRPC's own log would appear between our lines
    # Pydantic would look for plugins in every package that is installed.
    set_own_variable("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from parley.cli.app import parley

        words = list(arguments) or ["--help"]
        code = parley.main(words, command_name(), COMPLETION_VARIABLE, standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        return _fail(_describe_usage(error), INVALID_ARGUMENTS)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except CommandError as error:
        for line in (str(error), *error.more):
            _fail(line, error.code)
        return error.code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        return _end_unread()
    except OSError as error:
        return _fail(_describe(error), GENERAL)
    except Exception as error:  # noqa: BLE001 (raised again if somebody wants the traceback)
        return _end_unread() if _is_unread(error) else _fail_internally(error)
    return code if isinstance(code, int) else 0


def _is_unread(error: Exception) -> bool:
    """Return whether the reader of our output has had enough, as tasks of a group report it."""
    return isinstance(error, ExceptionGroup) and error.split(BrokenPipeError)[1] is None


def _fail_internally(error: Exception) -> int:
    if os.environ.get("PARLEY_TRACEBACK"):
        raise error
    name = type(error).__name__
    return _fail(f"internal error: {name}: {error} (PARLEY_TRACEBACK=1 prints a traceback)", GENERAL)


def _end_unread() -> int:
    sys.stderr.close()
    return GENERAL


def _describe(error: OSError) -> str:
    """Return what is wrong; an error without a file's name means that stdout cannot be written to."""
    if error.filename is not None or error.errno not in _OF_STDOUT:
        return str(error)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is flushed at the end
    why = "it is closed" if error.errno == errno.EBADF else error.strerror
    return f"stdout cannot be written to: {why}; redirect it to a file or a terminal that can"


def _describe_usage(error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption):
        return f"no such option: {error.option_name}{_suggest(error.option_name, error.possibilities)}"
    if isinstance(error, click.exceptions.NoSuchCommand):
        hint = _suggest(error.command_name, error.possibilities) or _hint_at_debate(error)
        return f"no such command: {error.command_name}{hint}"
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        name = _long_name(error.param) if isinstance(error.param, click.Option) else ""
        return f"{name}: {error.message}" if name else error.message
    message = error.format_message().rstrip(".")
    if not message:
        return "invalid arguments"
    hint = "; put quotes around a text of several words" if _has_words_behind_a_text(error) else ""
    return f"{message[0].lower()}{message[1:]}{hint}"


def _hint_at_debate(error: click.exceptions.NoSuchCommand) -> str:
    """Return how a question is asked, if several words stand where a command belongs; empty otherwise."""
    is_first = error.ctx is not None and error.ctx.parent is None
    is_text = len(error.command_name.split()) > 1
    return f"; to ask a question: {command_name()} debate QUESTION" if is_first and is_text else ""


def _has_words_behind_a_text(error: click.UsageError) -> bool:
    """Return whether arguments are too many for a command that takes a text."""
    takes = error.ctx.command.params if error.ctx else ()
    is_text = (isinstance(each, click.Argument) and each.type is click.STRING for each in takes)
    return "extra argument" in error.message and any(is_text)


def _long_name(option: click.Option) -> str:
    """Return the long name of an option."""
    return next((each for each in option.opts if each.startswith("--")), option.opts[0])


def _suggest(written: str, possible: Sequence[str] | None) -> str:
    """Return a hint at names that are similar; empty if there are none."""
    bare = written.lstrip("-")
    meant = [each for each in possible or () if _is_similar(bare, each.lstrip("-"))]
    return f"; did you mean {' or '.join(meant)}?" if meant else ""


def _is_similar(written: str, meant: str) -> bool:
    if len(written) > 2 and meant.startswith(written):
        return True
    return difflib.SequenceMatcher(None, written, meant).ratio() >= _NEAR


def _fail(message: str, code: int) -> int:
    say(f"parley: {message}")
    return code
