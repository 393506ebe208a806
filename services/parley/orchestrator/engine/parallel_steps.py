"""Steps that run at the same time until they are enough, and the groups of such steps that a step belongs to."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

from parley.orchestrator.engine.limiter import Limiter

T = TypeVar("T")

_scopes: ContextVar[frozenset[str]] = ContextVar("scopes", default=frozenset())


def get_scopes() -> frozenset[str]:
    """Return the groups of parallel steps that the present task belongs to."""
    return _scopes.get()


async def run_in_parallel(
    key: str,
    steps: Mapping[str, Callable[[], Coroutine[Any, Any, T]]],
    limiter: Limiter,
    enough: Callable[[Mapping[str, T]], bool] | None = None,
) -> dict[str, T]:
    """Run steps until they are enough, or all of them without `enough`. Return the results in the order in which they arrived.

    With `enough`, it is recorded under `key` which steps counted, before the others are stopped.
    """
    results: dict[str, T] = {}
    async with asyncio.TaskGroup() as tasks:
        running = {
            name: tasks.create_task(begin(), context=_context_with_scope(f"{key}/{name}"))
            for name, begin in steps.items()
        }
        while running and not (enough is not None and enough(results)):
            await asyncio.wait(running.values(), return_when=asyncio.FIRST_COMPLETED)
            for name in [name for name, task in running.items() if task.done()]:
                results[name] = running.pop(name).result()
        if enough is not None:
            await limiter.stop_left_out(key, tuple(results), tuple(running))
        for task in running.values():
            task.cancel()
    return results


def _context_with_scope(scope: str) -> Context:
    """Return a copy of the present context with one more group of steps."""
    context = copy_context()
    context.run(_scopes.set, _scopes.get() | {scope})
    return context
