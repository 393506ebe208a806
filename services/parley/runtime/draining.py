"""How a stopping server ends its streams, with a status from which they can be resumed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final, TypeVar

from parley.runtime.errors import DRAINING, ParleyError, unavailable

_RETRY_SECONDS: Final = 0.1
_LEAST_SECONDS: Final = 0.5

Item = TypeVar("Item")


class Draining:
    """A flag that is set once, when the server starts to stop. It is created at wiring and passed to the servicer."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._since = 0.0
        self._waiting: set[asyncio.Timeout] = set()

    def is_set(self) -> bool:
        """Return whether the server is stopping."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until the server starts to stop."""
        await self._event.wait()

    def set(self) -> None:
        """Start to drain: every stream inside `until` ends now."""
        self._event.set()
        self._since = now = asyncio.get_running_loop().time()
        for timeout in self._waiting:
            timeout.reschedule(now)

    def seconds_left(self, grace_seconds: float) -> float:
        """Return how much of its time to stop a server has left, but at least half a second."""
        since = asyncio.get_running_loop().time() - self._since if self.is_set() else 0.0
        return max(grace_seconds - since, _LEAST_SECONDS)

    def error(self) -> ParleyError:
        """Return the error that ends a stream: UNAVAILABLE, reason DRAINING. The caller resumes on another server."""
        return unavailable(
            DRAINING, "this server is stopping; resume on another one", retry_after=_RETRY_SECONDS
        )

    async def until(self, stream: AsyncIterator[Item]) -> AsyncGenerator[Item, None]:
        """Yield from `stream`, and raise `error()` when the server starts to stop.

        Only the wait for the next item is cut short; an item that was received is delivered.
        """
        timeout = asyncio.timeout(None)  # of the stream: one of each item costs a tenth of sending it
        try:
            async with timeout:
                while not self._event.is_set():
                    self._waiting.add(timeout)
                    try:
                        item = await anext(stream)
                    except StopAsyncIteration:
                        return
                    finally:
                        self._waiting.discard(timeout)
                    if self._event.is_set() and not timeout.expired():
                        timeout.reschedule(None)
                    yield item
            raise self.error()
        except TimeoutError:
            if timeout.expired():
                raise self.error() from None
            raise
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
