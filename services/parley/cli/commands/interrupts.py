"""Ctrl-C and the signals that ask a command to end, and how they leave the debate that it follows."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final, Self

from parley.cli.errors import INTERRUPTED
from parley.cli.terminal.painter import Painter

if TYPE_CHECKING:
    from parley.cli.terminal.checkpoints import Checkpoint

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None


class PausedError(Exception):
    """The user pressed Ctrl-C; the debate stays as it is."""


class CheckpointExpiredError(PausedError):
    """A checkpoint expired without an answer, and the debate is paused."""


class StillWaitingError(Exception):
    """The user pressed Ctrl-C or Ctrl-D while being asked; the debate still waits at this checkpoint."""

    def __init__(self, checkpoint: "Checkpoint") -> None:
        super().__init__(checkpoint.key)
        self.checkpoint = checkpoint


@contextmanager
def handle_signals(handlers: Mapping[signal.Signals, Callable[[], object]]) -> Iterator[None]:
    """Call handlers on the event loop while the block runs; afterwards each signal does what it did before."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in handlers}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
            # asyncio leaves Python's own handler of Ctrl-C: an error anywhere, and a traceback if it comes while Python ends.
            _restore(number, before[number])


def _restore(number: signal.Signals, handler: _Handler) -> None:
    """Put back what a signal did before. A handler that Python did not install is None to it: it cannot be put back."""
    signal.signal(number, signal.SIG_DFL if handler is None else handler)


class Interrupts:
    """Ctrl-C, SIGTERM or SIGHUP: the first sets an event, the second exits at once."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        # `nohup` ignores SIGHUP, and that must stay so.
        signals = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
        self._handling = handle_signals(dict.fromkeys(signals, self._interrupt))

    def __enter__(self) -> Self:
        self._handling.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._handling.__exit__(None, None, None)

    def _interrupt(self) -> None:
        if self.first.is_set():
            Painter.restore_terminal()
            os._exit(INTERRUPTED)  # recorded events are durable; nothing is left to write
        self.first.set()


@contextmanager
def cancel_on_interrupt() -> Iterator[None]:
    """On Ctrl-C, cancel the task that runs the block, so that it can restore the terminal, and raise KeyboardInterrupt.

    It is raised too if the block has nothing left to wait for, and ends as if nothing had happened.
    """
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    is_interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        loop.call_soon_threadsafe(task.cancel)  # it also wakes the loop

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except asyncio.CancelledError:
        if not is_interrupted:
            raise
    finally:
        _restore(signal.SIGINT, before)
    if is_interrupted:
        raise KeyboardInterrupt
