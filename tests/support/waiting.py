"""Waiting for what nothing tells of: what another process does, or a condition in this one."""

import asyncio
import inspect
import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 180.0) -> None:
    """Wait until a condition holds."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not within {seconds} s"
        time.sleep(0.02)


async def wait_until(condition: Callable[[], object], within: float = 30.0) -> None:
    """Wait until a condition holds, which may be one to await, while everything else goes on."""
    async with asyncio.timeout(within):
        while True:
            found = condition()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(0.005)
