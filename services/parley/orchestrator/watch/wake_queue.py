"""Waking many who wait for the same news without keeping the event loop from everything else."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

__all__ = ["WakeGroup", "WakeQueues"]


class WakeQueue:
    """Those of one tenant who are to be woken, in the order in which there was news for them."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._due: dict[asyncio.Event, None] = {}
        self._is_running = False

    def wake(self, all_of: Iterable[asyncio.Event]) -> None:
        """Set these events, soon."""
        self._due.update(dict.fromkeys(all_of))
        if not self._is_running:
            self._wake_one()

    def remove(self, news: asyncio.Event) -> None:
        """Have an event set no more."""
        self._due.pop(news, None)

    def _wake_one(self) -> None:
        """Wake the first; the next one the next time around the loop, since each takes up to a millisecond to be told what there is."""
        if news := next(iter(self._due), None):
            del self._due[news]
            news.set()
        self._is_running = bool(self._due)
        if self._is_running:
            asyncio.get_running_loop().call_soon(self._wake_one)


@dataclass(frozen=True, slots=True)
class WakeQueues:
    """The turn of each tenant: one of its watchers is woken each time around the loop, however many debates have news for them."""

    _by_tenant: WeakValueDictionary[str, WakeQueue] = field(default_factory=WeakValueDictionary)

    def for_tenant(self, tenant: str) -> WakeQueue:
        """Return a tenant's turn."""
        return self._by_tenant.setdefault(tenant, WakeQueue())


class WakeGroup:
    """The events of those who wait for one thing. They are set some at a time, as it is their tenant's turn."""

    def __init__(self, turn: WakeQueue) -> None:
        """Begin with nobody."""
        self._all: dict[asyncio.Event, None] = {}
        self._queue = turn

    def __len__(self) -> int:
        return len(self._all)

    def add(self, news: asyncio.Event) -> None:
        """Set an event at all news from now on."""
        self._all[news] = None

    def remove(self, news: asyncio.Event) -> None:
        """Set it no more."""
        self._all.pop(news, None)
        self._queue.remove(news)

    def notify(self) -> None:
        """Set all events, soon; who joins later is not concerned."""
        self._queue.wake(self._all)
