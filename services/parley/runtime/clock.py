"""Time as something that is handed in, so that tests can move it."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


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
