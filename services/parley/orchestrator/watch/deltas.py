"""Text of steps in flight, on its way to this replica's watchers. It is not part of any log."""

import asyncio
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from parley.orchestrator.model.delta import Delta
from parley.orchestrator.watch.wakes import Turns, Wakes

__all__ = ["MAX_WAITING_PIECES", "Deltas"]

MAX_WAITING_PIECES = 256
"""Pieces that wait for one listener; of more, the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class _Audience:
    wakes: Wakes
    queues: dict[asyncio.Event, deque[Delta]] = field(default_factory=dict)


class Deltas:
    """Hands each debate's pieces to those who listen to it."""

    def __init__(self) -> None:
        """Start with no listeners."""
        self._audiences: dict[str, _Audience] = {}
        self._turns = Turns()

    def publish(self, debate: str, delta: Delta) -> None:
        """Hand a piece on. A listener that has fallen behind misses older ones, which offsets show."""
        audience = self._audiences.get(debate)
        if audience is not None:
            for queue in audience.queues.values():
                queue.append(delta)
            audience.wakes.tell()

    @contextmanager
    def listen(self, tenant: str, debate: str, news: asyncio.Event) -> Generator[deque[Delta], None, None]:
        """Collect the pieces of a tenant's debate while the block runs, and set `news` when there are some."""
        audience = self._audiences.get(debate)
        if audience is None:
            audience = self._audiences[debate] = _Audience(Wakes(self._turns.of(tenant)))
        queue = audience.queues[news] = deque(maxlen=MAX_WAITING_PIECES)
        audience.wakes.add(news)
        try:
            yield queue
        finally:
            del audience.queues[news]
            audience.wakes.remove(news)
            if not audience.queues:
                del self._audiences[debate]
