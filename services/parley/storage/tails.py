"""The newest records of the logs that this process follows.

Many followers of one log share what one follower, an append, or a change stream has seen, so that a log with a
thousand watchers is read about as often as one with a single watcher.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from time import monotonic

from parley.storage.ports import Record

Read = Callable[[str, int], Awaitable[Sequence[Record]]]

_RECENT = 64
_RECENT_BYTES = 1024 * 1024
"""Of the recent records of one log. The last one is kept in any case."""


class _Tail:
    """The newest records of one log, without gaps, and the followers that wait for more."""

    def __init__(self) -> None:
        self.followers = 0
        self.last = 0
        self.recent: deque[Record] = deque()
        self.recent_bytes = 0
        self.waiters: set[asyncio.Future[bool]] = set()
        self.read_at = 0.0

    def offer(self, record: Record) -> None:
        if record.last <= self.last:
            return
        if record.first != self.last + 1:
            self.forget()
        self.recent.append(record)
        self.recent_bytes += _size(record)
        while len(self.recent) > 1 and (len(self.recent) > _RECENT or self.recent_bytes > _RECENT_BYTES):
            self.recent_bytes -= _size(self.recent.popleft())
        self.last = record.last
        for waiter in self.waiters:
            _end_wait(waiter, True)

    def forget(self) -> None:
        self.last = self.recent_bytes = 0
        self.recent.clear()

    def recent_after(self, after: int) -> list[Record]:
        """Return the recent records after `after`, or none if there is a gap."""
        if not self.recent or self.recent[0].first > after + 1:
            return []
        newer = takewhile(lambda record: record.last > after, reversed(self.recent))
        return list(newer)[::-1]


def _size(record: Record) -> int:
    return sum(map(len, record.entries))


def _end_wait(waiter: asyncio.Future[bool], has_grown: bool) -> None:  # noqa: FBT001 - a timer passes it by place
    if not waiter.done():
        waiter.set_result(has_grown)


class Tails:
    """The followed logs: records come from reads and through `offer`."""

    def __init__(self, read: Read, poll_interval: float) -> None:
        """Follow logs by `read(log, after)`, which returns a page, every `poll_interval` seconds at least."""
        self.poll_interval = poll_interval
        self._read = read
        self._tails: dict[str, _Tail] = {}

    def offer(self, log: str, record: Record) -> None:
        """Pass a stored record to the log's followers."""
        if tail := self._tails.get(log):
            tail.offer(record)

    def forget(self, log: str) -> None:
        """Forget the records of a deleted log."""
        if tail := self._tails.get(log):
            tail.forget()

    async def follow(self, log: str, after: int) -> AsyncGenerator[Record, None]:
        """Yield the records after `after`, then those that are appended, forever."""
        with self._follow_tail(log) as tail:
            records: Sequence[Record] = await self._read(log, after)
            while True:
                for record in records:
                    yield record
                    after = record.last
                records = await self._next_records(log, tail, after)

    async def _next_records(self, log: str, tail: _Tail, after: int) -> Sequence[Record]:
        while True:
            if recent := tail.recent_after(after):
                return recent
            if tail.last <= after and await self._wait_for_growth(tail):
                continue
            # Another follower at the same position may have read a moment ago; then its result is used.
            if tail.last <= after and monotonic() - tail.read_at < self.poll_interval / 2:
                continue
            if tail.last <= after:
                tail.read_at = monotonic()
            records = await self._read(log, after)
            for record in records:
                tail.offer(record)
            if records:
                return records
            if tail.last > after:  # the log was deleted elsewhere
                tail.forget()

    async def _wait_for_growth(self, tail: _Tail) -> bool:
        """Wait until the tail has grown, or for one poll interval; return whether it has grown."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(self.poll_interval, _end_wait, waiter, False)
        tail.waiters.add(waiter)
        try:
            return await waiter
        finally:
            tail.waiters.discard(waiter)
            timer.cancel()

    @contextmanager
    def _follow_tail(self, log: str) -> Iterator[_Tail]:
        tail = self._tails.setdefault(log, _Tail())
        tail.followers += 1
        try:
            yield tail
        finally:
            tail.followers -= 1
            if not tail.followers:
                del self._tails[log]
