"""Contexts that are entered at the same time, such as the services of a process: if one fails, all of them are left."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial


@asynccontextmanager
async def enter_together(*starts: AbstractAsyncContextManager[str]) -> AsyncIterator[list[str]]:
    """Enter several contexts concurrently, each in a task of its own; leave all of them together, or as soon as one fails."""
    async with _hold_all(starts) as (ready, _):
        yield await asyncio.gather(*ready)


@asynccontextmanager
async def enter_meanwhile(start: AbstractAsyncContextManager[str]) -> AsyncIterator[None]:
    """Enter a context in a task of its own while the block runs already; leave both together, or as soon as it fails."""
    async with _hold_all([start]) as ((ready,), stop):
        ready.add_done_callback(partial(_stop_if_failed, stop))
        yield


@asynccontextmanager
async def _hold_all(
    starts: Sequence[AbstractAsyncContextManager[str]],
) -> AsyncIterator[tuple[list[asyncio.Future[str]], Callable[[Exception], None]]]:
    """Begin to enter contexts; yield what each comes to, and what stops the block. Leave them after the block."""
    from parley.runtime.tasks import cancellable_block  # on use: commands that start nothing start faster

    leave = asyncio.Event()
    ready: list[asyncio.Future[str]] = [asyncio.get_running_loop().create_future() for _ in starts]
    async with cancellable_block() as stop:
        tasks = [
            asyncio.create_task(_hold_open(start, each, leave, stop))
            for start, each in zip(starts, ready, strict=True)
        ]
        try:
            yield ready, stop
        finally:
            leave.set()
            for task, each in zip(tasks, ready, strict=True):
                if not each.done() or each.cancelled():  # with the block that waited for it
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
