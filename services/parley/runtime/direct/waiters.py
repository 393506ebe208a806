"""Those who wait for a change on the event loop."""

import asyncio


class Waiters:
    """Tasks that wait until something changes; each looks again then."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def wait(self) -> asyncio.Future[None]:
        """Return what is done with the next change."""
        change: asyncio.Future[None] = asyncio.Future()
        self._waiting.append(change)
        return change

    def wake(self) -> None:
        """Wake all who wait."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
