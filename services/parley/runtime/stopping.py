"""Stopping a task for good, also where what it awaits swallows a cancellation."""

import asyncio
from typing import Any

from parley.runtime.logs import get_logger

__all__ = ["stop_task"]

_logger = get_logger(__name__)

_AGAIN_SECONDS = 0.1
_TIMES = 50


async def stop_task(task: asyncio.Task[Any], *, again_seconds: float = _AGAIN_SECONDS) -> None:
    """Cancel a task and wait until it has ended; one that goes on is cancelled again, and left alone after fifty times.

    On Python 3.11 `asyncio.wait_for`, which database drivers use, can take a cancellation for its own and return.
    """
    for _ in range(_TIMES):
        task.cancel()
        await asyncio.wait([task], timeout=again_seconds)
        if task.done():
            return
    _logger.error("a task does not end though it was cancelled", task=task.get_name())
