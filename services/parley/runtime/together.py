"""Contexts that are entered at the same time, such as the services of a process: if one fails, all of them are left."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial


@asynccontextmanager
async def enter_together(
    *starts: AbstractAsyncContextManager[str], waits: bool = True
) -> AsyncIterator[list[str]]:
    """Enter several contexts concurrently, each in a task of its own; leave all of them together, or as soon as one fails.

    Unless it `waits`, the block begins before they are entered, and gets nothing.
    """
    from parley.runtime.tasks import cancellable_block  # on use: commands that start nothing start faster

    leave = asyncio.Event()
    ready = [asyncio.get_running_loop().create_future() for _ in starts]
    async with cancellable_block() as stop:
        tasks = [
            asyncio.create_task(_hold_open(start, each, leave, stop))
            for start, each in zip(starts, ready, strict=True)
        ]
        if not waits:
            for each in ready:
                each.add_done_callback(partial(_stop_if_failed, stop))
        try:
            yield await asyncio.gather(*ready) if waits else []
        finally:
            leave.set()
            for task, each in zip(tasks, ready, strict=True):
                if not each.done():
                    task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error


def _stop_if_failed(stop: Callable[[Exception], None], ready: asyncio.Future[str]) -> None:
    error = ready.exception()
    if isinstance(error, Exception):
        stop(error)


async def _hold_open(
    start: AbstractAsyncContextManager[str],
    ready: asyncio.Future[str],
    leave: asyncio.Event,
    stop: Callable[[Exception], None],
) -> None:
    try:
        async with start as address:
            ready.set_result(address)
            await leave.wait()
    except Exception as error:
        if not ready.done():
            ready.set_exception(error)
        elif leave.is_set():
            raise
        else:
            stop(error)
