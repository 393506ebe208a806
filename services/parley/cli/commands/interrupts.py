"""Ctrl-C and the signals that ask a command to end."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from parley.cli.errors import INTERRUPTED
from parley.cli.terminal.painter import Painter

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Ctrl-C, SIGTERM or SIGHUP: the first sets an event, the second exits at once."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        # `nohup` ignores SIGHUP, and that must stay so.
        self._signals = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]

    def __enter__(self) -> Self:
        for number in self._signals:
            asyncio.get_running_loop().add_signal_handler(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._signals:
            asyncio.get_running_loop().remove_signal_handler(number)

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
        signal.signal(signal.SIGINT, before)
    if is_interrupted:
        raise KeyboardInterrupt
