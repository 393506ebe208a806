"""Waking many who wait for the same news without keeping the event loop from everything else."""

import asyncio
from itertools import islice

__all__ = ["Wakes"]

_AT_ONCE = 50


class Wakes:
    """The events of those who wait. They are set some at a time, and what else there is to do gets its turn between."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._all: dict[asyncio.Event, None] = {}
        self._due: dict[asyncio.Event, None] = {}
        self._under_way = False

    def __len__(self) -> int:
        return len(self._all)

    def add(self, news: asyncio.Event) -> None:
        """Set an event at all news from now on."""
        self._all[news] = None

    def remove(self, news: asyncio.Event) -> None:
        """Set it no more."""
        self._all.pop(news, None)
        self._due.pop(news, None)

    def tell(self) -> None:
        """Set all events, soon; who joins later is not concerned."""
        self._due.update(self._all)
        if not self._under_way:
            self._tell_some()

    def _tell_some(self) -> None:
        for news in list(islice(self._due, _AT_ONCE)):
            del self._due[news]
            news.set()
        self._under_way = bool(self._due)
        if self._under_way:
            asyncio.get_running_loop().call_soon(self._tell_some)
