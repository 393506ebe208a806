"""Ctrl-C, and being asked to end, while a command runs."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from parley.cli.errors import INTERRUPTED
from parley.cli.terminal.painter import restore_terminal

__all__ = ["Interrupts", "cancel_on_interrupt"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Ctrl-C, SIGTERM or a terminal that is gone: the first is noted, a second leaves at once."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        # `nohup` has SIGHUP ignored, and it is to stay so.
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
            restore_terminal()
            os._exit(INTERRUPTED)  # what was recorded is durable; nothing waits to be written
        self.first.set()


@contextmanager
def cancel_on_interrupt() -> Iterator[None]:
    """On Ctrl-C, cancel the task that runs the block, so that what it drew is taken back. Raise KeyboardInterrupt then."""
    task = asyncio.current_task()
    assert task is not None
    before = signal.getsignal(signal.SIGINT)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    try:
        yield
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
