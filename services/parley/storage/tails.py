"""The newest records of the logs that this process follows.

Many followers of one log share what one follower, an append, or a change stream has seen, and one read looks for news of all
logs. So a log with a thousand watchers, or a thousand logs, are asked for about as often as one with a single watcher.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from math import inf
from time import monotonic

from parley.storage.ports import Record, StoreUnavailableError

Read = Callable[[Mapping[str, int]], Awaitable[Mapping[str, Sequence[Record]]]]

PAGE = 1000
"""Records that one read returns at most, of all its logs. After so many there may be more."""
_RECENT = 64
_RECENT_BYTES = 1024 * 1024
"""Of the recent records of one log. The last one is kept in any case."""
_OWN_PAUSE = 10
"""How many poll intervals pass between two polls of a log that this process wrote to last: nearly always it writes the next record too."""
_MOST_AT_ONCE = 200
"""Logs that one read looks for news of."""
_HEARD_SECONDS = 3.0
"""How long nothing is polled after a notifier was heard of."""
_TRUSTED_SECONDS = 10.0
"""How long nothing is polled however alive a notifier is: what it has passed over would else be missed for as long as it lives."""


class _Tail:
    """The newest records of one log, without gaps, and the followers that wait for more.

    `waiters` are at their sequences. `seen_at` is when news was last looked for, or came; `complete_at`, when a read began that
    found all there was.
    """

    def __init__(self) -> None:
        self.followers = 0
        self.last = 0
        self.recent: deque[Record] = deque()
        self.recent_bytes = 0
        self.waiters: dict[asyncio.Future[bool], int] = {}
        self.seen_at = monotonic()
        self.complete_at = 0.0
        self.is_own = False

    def offer(self, record: Record, *, is_own: bool = False) -> None:
        if record.last <= self.last:
            return
        if record.first != self.last + 1:
            self.forget()
        self.recent.append(record)
        self.recent_bytes += _size(record)
        while len(self.recent) > 1 and (len(self.recent) > _RECENT or self.recent_bytes > _RECENT_BYTES):
            self.recent_bytes -= _size(self.recent.popleft())
        self.last = record.last
        self.seen_at, self.is_own = monotonic(), is_own
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
        """Follow logs by `read`, which returns up to PAGE records of what comes after a sequence in each of some logs.

        It is called every `poll_interval` seconds, more rarely for logs that this process writes to, and every ten seconds while a
        notifier is heard of.
        """
        self._poll_interval = poll_interval
        self._read = read
        self._tails: dict[str, _Tail] = {}
        self._notified_since = inf
        self._heard_until = 0.0

    def offer(self, log: str, record: Record, *, is_own: bool = False) -> None:
        """Pass a stored record to the log's followers. `is_own`: this process appended it."""
        if tail := self._tails.get(log):
            tail.offer(record, is_own=is_own)

    def begin_notices(self) -> None:
        """Note that from now on all records will be offered, as long as `hear` is called."""
        self._notified_since = monotonic()

    def hear(self) -> None:
        """Note that the notifier lives: polls would hardly ever find what it does not offer."""
        self._heard_until = monotonic() + _HEARD_SECONDS

    def forget(self, log: str) -> None:
        """Forget the records of a deleted log."""
        if tail := self._tails.get(log):
            tail.forget()

    async def follow(self, log: str, after: int) -> AsyncGenerator[Record, None]:
        """Yield the records after `after`, then those that are appended, forever."""
        with self._follow_tail(log) as tail:
            is_complete = False
            while not is_complete:
                began = monotonic()
                records = await self._read_page(log, after)
                is_complete = len(records) < PAGE
                if is_complete and tail.followers == 1:  # nobody is behind
                    tail.complete_at = began
                for record in records:
                    yield record
                    after = record.last
            while True:
                for record in await self._read_next_records(log, tail, after):
                    yield record
                    after = record.last

    async def _read_next_records(self, log: str, tail: _Tail, after: int) -> Sequence[Record]:
        while True:
            if recent := tail.recent_after(after):
                return recent
            if tail.last <= after:
                if not await self._wait_for_growth(tail, after):
                    await self._poll(log, after)
                continue
            records = await self._read_page(log, after)
            for record in records:
                tail.offer(record)
            if records:
                return records
            tail.forget()  # the log was deleted elsewhere

    async def _read_page(self, log: str, after: int) -> Sequence[Record]:
        return (await self._read({log: after})).get(log, ())

    async def _wait_for_growth(self, tail: _Tail, after: int) -> bool:
        """Wait until the tail has grown, or news is to be looked for; return whether it has grown."""
        loop = asyncio.get_running_loop()
        while True:  # once at least, so that followers whose time has come at once are polled for together
            waiter: asyncio.Future[bool] = loop.create_future()
            timer = loop.call_later(self._due_at(tail) - monotonic(), _end_wait, waiter, False)
            tail.waiters[waiter] = after
            try:
                if await waiter or tail.last > after:  # it may have grown just when its time had come
                    return True
            finally:
                del tail.waiters[waiter]
                timer.cancel()
            if self._due_at(tail) <= monotonic():
                return False

    def _due_at(self, tail: _Tail) -> float:
        due = tail.seen_at + self._poll_interval * (_OWN_PAUSE if tail.is_own else 1)
        if tail.complete_at < self._notified_since:
            return due  # what was appended before the notices began is not among them
        return max(due, min(self._heard_until, tail.complete_at + _TRUSTED_SECONDS))

    async def _poll(self, log: str, after: int) -> None:
        """Look for news of a log, and with the same read of others that are due soon."""
        began = monotonic()
        positions = {log: min((after, *self._tails[log].waiters.values()))}
        due_soon = sorted(
            (due, other)
            for other, tail in self._tails.items()
            if tail.waiters and (due := self._due_at(tail)) <= began + self._poll_interval / 2
        )
        for _, other in due_soon[: _MOST_AT_ONCE - 1]:
            positions.setdefault(other, min(self._tails[other].waiters.values()))
        tails = {each: self._tails[each] for each in positions}
        for tail in tails.values():  # before the read: whoever wakes meanwhile goes by it
            tail.seen_at = began
        try:
            await self._look_for_news(positions)
        except StoreUnavailableError:
            raise
        except Exception:  # a record of one of them cannot be read, for whatever reason
            if len(positions) == 1:
                raise
            await self._look_in_each(log, positions, tails)
        for tail in tails.values():
            tail.complete_at = began

    async def _look_for_news(self, positions: dict[str, int]) -> None:
        found = PAGE
        while found >= PAGE:
            news = await self._read(positions)
            for each, records in news.items():
                for record in records:
                    self.offer(each, record)
                    positions[each] = record.last
            found = sum(map(len, news.values()))

    async def _look_in_each(self, log: str, positions: Mapping[str, int], tails: dict[str, _Tail]) -> None:
        """Look for news of each log by itself, and take those that cannot be read out of `tails`.

        Raise what keeps `log` from being read. Followers of others look at once themselves, and get what keeps theirs.
        """
        failures: dict[str, Exception] = {}
        for each, after in positions.items():
            try:
                await self._look_for_news({each: after})
            except StoreUnavailableError:
                raise
            except Exception as error:  # noqa: BLE001 - it is raised for those who follow that log
                failures[each] = error
                tails.pop(each).seen_at = -inf
        if log in failures:
            raise failures[log]

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
