"""Wakes many tasks that wait for the same news, a few at a time, so that the event loop stays free for other work."""

import asyncio
from collections.abc import Iterable
from itertools import chain, islice
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct, field

_AT_ONCE: Final = 4
"""Events that are set in one iteration of the loop. Each iteration costs what a task does that sends a message; each task takes up to a millisecond."""


class WakeQueue:
    """The events of one tenant that are to be set in the order in which they became due: mostly urgent ones first, and another one beside each few."""

    def __init__(self) -> None:
        """Start empty."""
        self._urgent: dict[asyncio.Event, None] = {}
        self._due: dict[asyncio.Event, None] = {}
        self._is_running = False

    def wake(self, events: Iterable[asyncio.Event], *, urgent: bool = False) -> None:
        """Set these events, soon."""
        (self._urgent if urgent else self._due).update(dict.fromkeys(events))
        if not self._is_running:
            self._wake_some()

    def remove(self, news: asyncio.Event) -> None:
        """Remove an event, so that it is not set any more."""
        self._urgent.pop(news, None)
        self._due.pop(news, None)

    def _wake_some(self) -> None:
        """Set the first few events, and the next ones in the next loop iteration. One that is set is due for nothing else."""
        # One of the others too, so that they are not left waiting while urgent ones never cease.
        urgent = islice(self._urgent, _AT_ONCE - bool(self._due))
        for news in list(islice(chain(urgent, self._due), _AT_ONCE)):
            self.remove(news)
            news.set()
        self._is_running = bool(self._urgent or self._due)
        if self._is_running:
            asyncio.get_running_loop().call_soon(self._wake_some)


class WakeQueues(Struct, frozen=True):
    """The queue of each tenant: a few of its watchers are woken in each loop iteration, however many debates have news."""

    _by_tenant: WeakValueDictionary[str, WakeQueue] = field(default_factory=WeakValueDictionary)

    def for_tenant(self, tenant: str) -> WakeQueue:
        """Return a tenant's queue."""
        return self._by_tenant.setdefault(tenant, WakeQueue())


class WakeGroup:
    """The events of all tasks that wait for the same news. They are set through the queue of their tenant."""

    def __init__(self, queue: WakeQueue, *, urgent: bool = False) -> None:
        """Start empty. `urgent`: most of them are set before those of other groups."""
        self._events: dict[asyncio.Event, None] = {}
        self._queue = queue
        self._urgent = urgent

    def __len__(self) -> int:
        return len(self._events)

    def add(self, news: asyncio.Event) -> None:
        """Add an event that is set at all news from now on."""
        self._events[news] = None

    def remove(self, news: asyncio.Event) -> None:
        """Remove an event."""
        self._events.pop(news, None)
        self._queue.remove(news)

    def notify(self) -> None:
        """Set all events soon, but not those that are added later."""
        self._queue.wake(self._events, urgent=self._urgent)
