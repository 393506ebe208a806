"""Text of steps in flight, on its way to this replica's watchers. It is not part of any log."""

import asyncio
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from parley.orchestrator.model.delta import Delta
from parley.orchestrator.watch.wakes import WakeGroup, WakeQueues

__all__ = ["MAX_WAITING_PIECES", "DeltaBroker"]

MAX_WAITING_PIECES = 256
"""Pieces that wait for one listener; of more, the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class _Listeners:
    wake_group: WakeGroup
    queues: dict[asyncio.Event, deque[Delta]] = field(default_factory=dict)


class DeltaBroker:
    """Hands each debate's pieces to those who listen to it."""

    def __init__(self) -> None:
        """Start with no listeners."""
        self._listeners: dict[str, _Listeners] = {}
        self._wake_queues = WakeQueues()

    def publish(self, debate: str, delta: Delta) -> None:
        """Hand a piece on. A listener that has fallen behind misses older ones, which offsets show."""
        audience = self._listeners.get(debate)
        if audience is not None:
            for queue in audience.queues.values():
                queue.append(delta)
            audience.wake_group.notify()

    @contextmanager
    def listen(self, tenant: str, debate: str, news: asyncio.Event) -> Generator[deque[Delta], None, None]:
        """Collect the pieces of a tenant's debate while the block runs, and set `news` when there are some."""
        audience = self._listeners.get(debate)
        if audience is None:
            audience = self._listeners[debate] = _Listeners(WakeGroup(self._wake_queues.for_tenant(tenant)))
        queue = audience.queues[news] = deque(maxlen=MAX_WAITING_PIECES)
        audience.wake_group.add(news)
        try:
            yield queue
        finally:
            del audience.queues[news]
            audience.wake_group.remove(news)
            if not audience.queues:
                del self._listeners[debate]
