"""Where a debate's calls wait while it is paused, and where one can wait until none is in flight."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

__all__ = ["Gate"]


class Gate:
    """Open at first. Closing it stops new calls, not those in flight."""

    def __init__(self) -> None:
        """Start open, with nothing in flight."""
        self._open = asyncio.Event()
        self._open.set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._inside = 0

    @property
    def is_empty(self) -> bool:
        """Whether no call is in flight."""
        return self._inside == 0

    def close(self) -> None:
        """Let no new call through."""
        self._open.clear()

    def open(self) -> None:
        """Let calls through again."""
        self._open.set()

    async def wait_until_empty(self) -> None:
        """Wait until no call is in flight."""
        await self._empty.wait()

    @asynccontextmanager
    async def pass_through(self) -> AsyncGenerator[None, None]:
        """Wait until the gate is open, then count as in flight until the block is left."""
        await self._open.wait()
        self._inside += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if self._inside == 0:
                self._empty.set()
