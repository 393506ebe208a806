"""Ends watches whose reader takes no message for too long.

One timer looks at all of them: a timer for each message costs half as much as sending it.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

_LOOKS: Final = 8
"""How often it is looked while a reader may take for a message: it gets up to an eighth more time."""


class SlowReaders:
    """The watches that are writing a message now, and since when."""

    def __init__(self, seconds: float) -> None:
        """Let a reader take so many seconds for one message."""
        self._seconds = seconds
        self._since: dict[asyncio.Timeout, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def wait_for(self, writing: Awaitable[object], stream: asyncio.Timeout) -> None:
        """Wait until a message of a watch is written, which runs in the timeout `stream`. The timeout expires if that takes too long."""
        loop = asyncio.get_running_loop()
        self._since[stream] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._seconds / _LOOKS, self._look)
        try:
            await writing
        finally:
            del self._since[stream]

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for stream, since in self._since.items():
            if since > now - self._seconds:
                break  # the others began later
            if not stream.expired():
                stream.reschedule(now)
        self._timer = loop.call_later(self._seconds / _LOOKS, self._look) if self._since else None
