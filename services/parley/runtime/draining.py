"""How a stopping server tells the streams it carries, so that they end with a status to resume from."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final, TypeVar

from parley.runtime.errors import DRAINING, ParleyError, unavailable

__all__ = ["Draining"]

_RETRY_SECONDS: Final = 0.1

Item = TypeVar("Item")


class Draining:
    """Set once, when the server begins to stop. Made where a service is wired, and handed to its servicer."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._waiting: set[asyncio.Timeout] = set()

    def is_set(self) -> bool:
        """Return whether the server is stopping."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until the server begins to stop."""
        await self._event.wait()

    def set(self) -> None:
        """Begin to drain: every stream inside `until` ends now."""
        self._event.set()
        now = asyncio.get_running_loop().time()
        for timeout in self._waiting:
            timeout.reschedule(now)

    def error(self) -> ParleyError:
        """Return what a stream ends with: UNAVAILABLE, reason DRAINING. The caller goes on where it was, elsewhere."""
        return unavailable(
            DRAINING, "this server is stopping; resume on another one", retry_after=_RETRY_SECONDS
        )

    async def until(self, stream: AsyncIterator[Item]) -> AsyncGenerator[Item, None]:
        """Pass `stream` on, and raise `error()` once the server begins to stop.

        Only the wait for the next item is cut short; an item that was got is delivered.
        """
        try:
            while True:
                if self._event.is_set():
                    raise self.error()
                timeout = asyncio.timeout(None)
                try:
                    async with timeout:
                        self._waiting.add(timeout)
                        item = await anext(stream)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    if timeout.expired():
                        raise self.error() from None
                    raise
                finally:
                    self._waiting.discard(timeout)
                yield item
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
