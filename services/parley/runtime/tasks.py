"""Background tasks of a service, and how to stop a task. If a background task fails, the service stops."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from parley.runtime.errors import PartFailedError
from parley.runtime.logs import get_logger

_CANCEL_AGAIN_SECONDS = 0.1
_MAX_CANCELS = 50

_logger = get_logger(__name__)


@asynccontextmanager
async def background_task(what: str, work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work` concurrently while the block runs. `what` names this part of the service in messages.

    If the work fails, the block is cancelled, so that a server in it drains, and PartFailedError is raised.
    """
    leaving = False
    async with cancellable_block() as stop:

        async def run_work() -> None:
            try:
                await work
            except asyncio.CancelledError as error:
                if leaving:
                    raise
                # The service did not ask for it: a library let a cancellation of its own through.
                _logger.exception("a part of the service was cancelled", part=what)
                stop(_failure(what, error))
            except Exception as error:
                _logger.exception("a part of the service failed", part=what)
                stop(_failure(what, error))

        task = asyncio.create_task(run_work())
        try:
            yield
        finally:
            leaving = True
            await stop_task(task)
            work.close()  # it may not have begun


@asynccontextmanager
async def cancellable_block() -> AsyncIterator[Callable[[Exception], None]]:
    """Open a block that another task can stop: the block is cancelled, and raises the given error."""
    block = asyncio.current_task()
    assert block is not None, "a block of a coroutine runs in a task"
    reasons: list[Exception] = []

    def stop(reason: Exception) -> None:
        reasons.append(reason)
        block.cancel()

    try:
        yield stop
    except asyncio.CancelledError:
        if not reasons:
            raise
        block.uncancel()
        raise reasons[0] from None


def _failure(what: str, error: BaseException) -> PartFailedError:
    said = " ".join(str(error).split())
    return PartFailedError(f"{what} failed: {type(error).__name__}{f': {said}' if said else ''}")


async def stop_task(task: asyncio.Task[Any], *, again_seconds: float = _CANCEL_AGAIN_SECONDS) -> None:
    """Cancel a task and wait until it has ended. If it goes on, cancel it again, fifty times at most.

    On Python 3.11 `asyncio.wait_for`, which database drivers use, may swallow a cancellation and return.
    """
    for _ in range(_MAX_CANCELS):
        task.cancel()
        await asyncio.wait([task], timeout=again_seconds)
        if task.done():
            return
    _logger.error("a task does not end though it was cancelled", task=task.get_name())
