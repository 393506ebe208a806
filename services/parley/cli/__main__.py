"""The entry of the `parley` command. It imports nothing slow before Ctrl-C is handled."""

import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

_NEW_OBJECTS: Final = 1_000_000
"""New objects from which on garbage is looked for. Imports make 400,000 that stay: with Python's 700, a sixth of a start goes into
looking at them. A system that is started here sets its own number."""


def main() -> None:
    """Run the command line of this process and exit."""
    # Not if the parent process wants it ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit_at_once)
    codes: list[int] = []
    atexit.register(_leave_at_once, codes)  # before any other, so that it is called after all others
    gc.set_threshold(_NEW_OBJECTS)
    _open_standard_streams()
    _create_private_files()
    _tolerate_lost_messages()
    codes.append(run(sys.argv[1:]))
    sys.exit(codes[0])


def _leave_at_once(codes: Sequence[int]) -> None:
    """Exit without taking down all that was imported, which takes 40 ms after a debate; not if an error ends the process."""
    if codes:
        with suppress(OSError, ValueError):  # Python says what cannot be flushed
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(codes[0])


def _open_standard_streams() -> None:
    """Open in place of a standard stream that was closed: its number would go to the next file or socket that is opened."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Printing fails, messages on stderr are dropped.
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _create_private_files() -> None:
    """Create files that only this user can read."""
    from parley.runtime.private_files import set_private_umask

    set_private_umask()


def _tolerate_lost_messages() -> None:
    """Continue if stderr cannot be written to: a command does its work without messages."""
    from parley.runtime.lossy_stream import LossyStream

    stream = sys.stderr if sys.stderr is not None else open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = LossyStream(stream)


def _exit_at_once(*_: object) -> None:
    """Exit at once on Ctrl-C, for commands without a handler of their own.

    KeyboardInterrupt would be raised anywhere, such as in an import, which prints a traceback and goes on.
    """
    os._exit(128 + signal.SIGINT)


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code; print errors to stderr."""
    from parley.cli import command_line

    return command_line.run(arguments)


if __name__ == "__main__":
    main()
