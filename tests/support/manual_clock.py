"""A clock that stands still until a test moves it."""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

_START = datetime(2030, 1, 1, tzinfo=UTC)


class ManualClock:
    """`advance` moves it and wakes whoever slept until then, in the order of their times."""

    def __init__(self, start: datetime = _START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = 0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._changed = asyncio.Event()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def jump(self, ahead: timedelta) -> None:
        """Moves the wall time alone, as an administrator or a time server does."""
        self._start += ahead

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        # Counted from the call: a task made of it begins later, and the test may have moved the time by then.
        return self._sleep_until(self._elapsed + seconds)

    async def _sleep_until(self, deadline: float) -> None:
        if deadline <= self._elapsed:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        self._order += 1
        heapq.heappush(self._sleepers, (deadline, self._order, woken))
        self._changed.set()
        await woken

    @property
    def sleepers(self) -> int:
        """How many tasks sleep on this clock now."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    def advance(self, seconds: float) -> None:
        """Moves the time on. Who wakes runs when the test next awaits, and then sees the new time."""
        if seconds < 0:
            raise ValueError("time never goes back")
        self._elapsed += seconds
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)

    async def sleeping(self, count: int = 1) -> None:
        """Returns when at least `count` tasks sleep; TimeoutError after 30 real seconds."""
        async with asyncio.timeout(30):
            while self.sleepers < count:
                self._changed.clear()
                await self._changed.wait()


async def advance_until(
    clock: ManualClock,
    condition: Callable[[], bool],
    step: float = 1.0,
    *,
    is_idle: Callable[[], bool] = lambda: True,
) -> None:
    """Let the time go on in steps, each once two loops wait again, until something is so. It stands still while something is not idle."""
    async with asyncio.timeout(30):
        while not condition():
            await clock.sleeping(2)
            if is_idle():
                clock.advance(step)
            await asyncio.sleep(0.001)
