"""Text of steps in flight, on its way to this replica's watchers. It is not part of any log."""

import asyncio
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Delta", "Deltas"]

_WAITING = 1024


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of text. `attempt` is the step's, `try_number` the gateway's within it; `offset` counts characters."""

    key: str
    attempt: int
    try_number: int
    offset: int
    text: str


class Deltas:
    """Hands each debate's pieces to those who listen to it."""

    def __init__(self) -> None:
        """Start with no listeners."""
        self._listeners: defaultdict[str, set[asyncio.Queue[Delta]]] = defaultdict(set)

    def publish(self, debate: str, delta: Delta) -> None:
        """Hand a piece on. A listener that has fallen behind misses it, which its offset shows."""
        for queue in self._listeners.get(debate, ()):
            if not queue.full():
                queue.put_nowait(delta)

    @contextmanager
    def listen(self, debate: str) -> Generator[asyncio.Queue[Delta], None, None]:
        """Collect a debate's pieces while the block runs."""
        queue: asyncio.Queue[Delta] = asyncio.Queue(_WAITING)
        self._listeners[debate].add(queue)
        try:
            yield queue
        finally:
            self._listeners[debate].discard(queue)
            if not self._listeners[debate]:
                del self._listeners[debate]
