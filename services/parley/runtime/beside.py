"""What a service does beside answering calls: if it ends in an error, so does the service."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from parley.runtime.errors import PartFailedError
from parley.runtime.logs import get_logger
from parley.runtime.stopping import stop_task

__all__ = ["beside", "stoppable"]

_logger = get_logger(__name__)


@asynccontextmanager
async def beside(what: str, work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do `work` while the block runs. `what` says to people which part of the service it is.

    If the work fails, the block is cancelled, so that a server in it drains, and PartFailedError is raised.
    """
    leaving = False
    async with stoppable() as stop:

        async def watched() -> None:
            try:
                await work
            except asyncio.CancelledError as error:
                if leaving:
                    raise
                # Nobody asked for it: a library let a cancellation of its own through.
                _logger.exception("a part of the service was cancelled", part=what)
                stop(_failed(what, error))
            except Exception as error:
                _logger.exception("a part of the service failed", part=what)
                stop(_failed(what, error))

        task = asyncio.create_task(watched())
        try:
            yield
        finally:
            leaving = True
            await stop_task(task)
            work.close()  # it may not have begun


@asynccontextmanager
async def stoppable() -> AsyncIterator[Callable[[Exception], None]]:
    """Open a block that can be ended from beside it: it is cancelled, and raises the error given as the reason."""
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


def _failed(what: str, error: BaseException) -> PartFailedError:
    said = " ".join(str(error).split())
    return PartFailedError(f"{what} failed: {type(error).__name__}{f': {said}' if said else ''}")
