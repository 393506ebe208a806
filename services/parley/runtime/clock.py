"""Time as something that is handed in, so that tests can move it."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Final, Protocol

from parley.runtime.logs import get_logger

_STEADY_SECONDS: Final = 3600.0

_logger = get_logger(__name__)


class Clock(Protocol):
    """Wall time for records, monotonic time for durations, and a way to wait."""

    def now(self) -> datetime:
        """Return the wall time, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Return the seconds from an arbitrary start; they never go back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long; zero or less gives other tasks a turn."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the wall time, aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds from an arbitrary start; they never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that long; zero or less gives other tasks a turn."""
        await asyncio.sleep(max(seconds, 0.0))


class ClockWatch:
    """Notices that the wall time was set, so that nothing is deleted for its age by a time that is wrong and soon mended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._measure()
        self._set_at = -inf

    def is_steady(self) -> bool:
        """Return whether the time was not set by more than an hour, as calls of this method saw, within the last hour."""
        before, self._offset = self._offset, self._measure()
        if abs(self._offset - before) > _STEADY_SECONDS:
            self._set_at = self._clock.monotonic()
            changed = timedelta(seconds=round(self._offset - before))
            _logger.warning("the clock was set; nothing is deleted for its age for an hour", by=str(changed))
        return self._clock.monotonic() - self._set_at >= _STEADY_SECONDS

    def _measure(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()


async def wait_or_timeout(event: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Wait for an event, at most so long by this clock. Return whether it is set."""
    waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(clock.sleep(seconds))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    return event.is_set()
