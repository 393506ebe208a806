"""The log of a debate, shared by all its watchers at one replica: it is followed, checked and parsed once.

What this process records itself comes as it was recorded, and is not parsed again.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from contextvars import Context
from time import monotonic

from msgspec import Struct, field

from parley.orchestrator.log.bare_spec import bare_event
from parley.orchestrator.log.envelope import GENESIS, Envelope
from parley.orchestrator.log.reading import log_name, open_in_thread_if_large
from parley.orchestrator.watch.batches import KeptBatches
from parley.runtime.tasks import stop_task
from parley.runtime.wake_queue import WakeGroup, WakeQueue, WakeQueues
from parley.storage.ports import Log, Record
from parley.v1.event_pb2 import Closed, Concluded, DebateFailed, Resumed, StepFailed, StepSucceeded

_PAGE = 200
_MAX_RETURNED = 64
_WAKES_PER_HEARTBEAT = 4
"""How often a reader is woken in the time of one heartbeat."""
_OFFERS_SECONDS = 5.0
"""For so long after an offer the log is not read: what comes next is mostly offered, too, but for a takeover by another replica."""
_MAX_KEPT_BYTES = 8_000_000
"""Bytes of the events that are kept of one debate."""
_MAX_BYTES_OF_ALL = 48_000_000
"""Bytes of the events that are kept of all debates."""


class KeptBytes:
    """The bytes of the events that all feeds of a replica keep. If there are too many, the feed with the most drops its oldest."""

    def __init__(self, limit: int = _MAX_BYTES_OF_ALL) -> None:
        """Start without feeds."""
        self.limit = limit
        self.total = 0
        self.feeds: set[Feed] = set()

    def trim(self) -> None:
        """Drop events until there are few enough. Each feed keeps its newest."""
        while self.total > self.limit:
            largest = max(self.feeds, key=lambda feed: feed.spare_bytes)
            if not largest.spare_bytes:
                return
            largest.drop(1)


class Feed:
    """The newest events of one debate, and the readers that wait for more.

    Attributes:
        last: Sequence of the newest event; 0 if there is none.
        epoch: The claim that this event was written under.
        is_complete: Whether all events that the log had at first are read.
        closed: Whether the debate is closed. No event follows.
        failed: Whether it failed and was neither resumed nor cancelled since.
        failure: The error that stopped the reading of the log, if any.
        readers: The events that are set if there is more.
        batches: What its watchers got last.
        checked_at: When the existence of the log was last checked, by the monotonic clock.
    """

    def __init__(
        self,
        queue: WakeQueue,
        max_kept_bytes: int = _MAX_KEPT_BYTES,
        kept: KeptBytes | None = None,
        *,
        is_offered: bool = False,
    ) -> None:
        """Start before the first event. Readers are woken through `queue`; so many bytes of the newest events are kept.

        `kept` counts the bytes of all feeds. If it `is_offered`, this process runs the debate, and offers what it records.
        """
        self.last = 0
        self.epoch = 0
        self.is_complete = self.closed = self.failed = False
        self.checked_at = monotonic()
        self.failure: Exception | None = None
        self._max_kept_bytes = max_kept_bytes
        self._events: list[Envelope] = []
        self._sizes: list[int] = []
        self._kept_bytes = 0
        self._kept_by_all = kept or KeptBytes()
        self._outcomes: dict[str, tuple[int, int]] = {}
        self._hash = GENESIS
        self._offered_at = monotonic() if is_offered else 0.0
        self._must_follow = not is_offered
        self._offers_ended = asyncio.Event()
        self.readers = WakeGroup(queue, urgent=True)
        self.batches = KeptBatches()

    def events_after(self, sequence: int) -> Sequence[Envelope] | None:
        """Return some of the events after a sequence, or None if the next one is no longer kept."""
        if not self._events or sequence >= self.last:
            return ()
        place = sequence + 1 - self._events[0].sequence
        return self._events[place : place + _MAX_RETURNED] if place >= 0 else None

    def has_outcome(self, step: str, attempt: int, through: int) -> bool:
        """Return whether the events up to a sequence include the outcome of this attempt at a step, or of a later attempt."""
        ended, sequence = self._outcomes.get(step, (0, 0))
        return ended >= attempt and sequence <= through

    async def run(self, log: Log, tenant: str, debate: str, wake_seconds: float) -> None:
        """Read the log and follow it until cancelled. If it cannot be read, set `failure` and return.

        Readers are also woken every `wake_seconds` without news, for their heartbeats: one timer serves all of them.
        """
        self._kept_by_all.feeds.add(self)
        try:
            async with asyncio.TaskGroup() as tasks:
                waking = tasks.create_task(self._wake_readers(wake_seconds))
                await self._follow(log, tenant, debate)
                waking.cancel()
        finally:
            self._kept_by_all.feeds.remove(self)
            self.drop(len(self._events))

    async def _wake_readers(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            self.readers.notify()

    async def _follow(self, log: Log, tenant: str, debate: str) -> None:
        name = log_name(tenant, debate)
        try:
            while not self.is_complete:
                records = await log.read(name, self.last, _PAGE)
                await self._open(records)
                self.is_complete = len(records) < _PAGE
                del records  # they would be kept for as long as the log is followed
            self.readers.notify()
            while True:
                if self._must_follow:
                    await self._follow_until_offered(log, name)
                await self._wait_while_offered(log, name)
                self._must_follow = True
        except Exception as error:  # noqa: BLE001 - the readers must get any error
            self.failure = error
            self.readers.notify()

    async def _follow_until_offered(self, log: Log, name: str) -> None:
        """Add what is appended to the log, until that was offered before."""
        async with aclosing(log.follow(name, self.last)) as following:
            async for record in following:
                if record.last <= self.last:
                    return
                await self._open([record])

    async def _wait_while_offered(self, log: Log, name: str) -> None:
        """Return once another process may write to the log: this one offers no more, or the log has what was not offered."""
        read_at = 0.0
        while not self._offers_ended.is_set():
            left = max(self._offered_at, read_at) + _OFFERS_SECONDS - monotonic()
            if left > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._offers_ended.wait()
                continue
            last, read_at = self.last, monotonic()
            await self._open(await log.read(name, last, _PAGE))
            if self.last > last and self._offered_at + _OFFERS_SECONDS < monotonic():
                return

    def offer(self, events: Sequence[Envelope]) -> None:
        """Add events that this process has just recorded, if they come next; else they come with the log."""
        if self.is_complete and self.failure is None and events[0].sequence == self.last + 1:
            self._offered_at = monotonic()
            self._offers_ended.clear()
            self._append(events)
        else:
            self._must_follow = True

    def end_offers(self) -> None:
        """Follow the log again: this process does not run the debate any more, and another one may."""
        self._offers_ended.set()

    async def _open(self, records: Sequence[Record]) -> None:
        """Check and add what is new in records."""
        events = await open_in_thread_if_large(records, self.last, self._hash)
        # Some may have been offered meanwhile.
        if new := [each for each in events if each.sequence > self.last]:
            self._append(new)

    def _append(self, events: Sequence[Envelope]) -> None:
        for event in events:
            bare = bare_event(event)
            self._events.append(bare)
            size = len(bare.entry) or bare.message.ByteSize()
            self._sizes.append(size)
            self._kept_bytes += size
            self._kept_by_all.total += size
            self.last, self.epoch, self._hash = event.sequence, event.epoch, event.hash
            self._apply(event)
        self._trim()
        self.readers.notify()

    def _apply(self, event: Envelope) -> None:
        match event.payload:
            case Closed():
                self.closed = True
            case DebateFailed():
                self.failed = True
            case Resumed() | Concluded():  # a cancelled debate is still to be closed
                self.failed = False
            case StepSucceeded() | StepFailed():
                self._outcomes[event.key] = (event.attempt, event.sequence)
            case _:
                pass

    def _trim(self) -> None:
        while self._kept_bytes > self._max_kept_bytes and self.spare_bytes:
            self.drop(1)
        self._kept_by_all.trim()

    @property
    def spare_bytes(self) -> int:
        """The bytes of all events that are kept but the newest."""
        return self._kept_bytes - self._sizes[-1] if self._sizes else 0

    def drop(self, count: int) -> None:
        """Drop the oldest events that are kept."""
        self.batches.clear()  # they have events, too
        size = sum(self._sizes[:count])
        self._kept_bytes -= size
        self._kept_by_all.total -= size
        del self._events[:count]
        del self._sizes[:count]


class _RunningFeed(Struct):
    feed: Feed
    task: asyncio.Task[None]


class Feeds(Struct):
    """The feeds of the debates that are watched at this replica.

    Attributes:
        heartbeat_seconds: After so long without news a watcher gets a heartbeat.
        wake_queues: Watchers are woken through these: for events before those that only wait for text in the same queues.
    """

    log: Log
    max_kept_bytes: int = _MAX_KEPT_BYTES
    heartbeat_seconds: float = 15.0
    wake_queues: WakeQueues = field(default_factory=WakeQueues)
    _kept: KeptBytes = field(default_factory=KeptBytes)
    _running: dict[str, _RunningFeed] = field(default_factory=dict)
    _offered: set[str] = field(default_factory=set)
    """The logs that this process writes."""

    @property
    def silence_seconds(self) -> float:
        """The time without news after which a heartbeat is sent. Readers check only if they are woken, so it is a little less."""
        return self.heartbeat_seconds - self._wake_seconds

    @property
    def _wake_seconds(self) -> float:
        return self.heartbeat_seconds / _WAKES_PER_HEARTBEAT

    def offer(self, events: Sequence[Envelope]) -> None:
        """Pass events that this process has just recorded in a debate to those who watch it."""
        name = log_name(events[0].tenant, events[0].debate)
        self._offered.add(name)
        running = self._running.get(name)
        if running is not None:
            running.feed.offer(events)

    def end_offers(self, tenant: str, debate: str) -> None:
        """Note that this process does not run a debate any more."""
        name = log_name(tenant, debate)
        self._offered.discard(name)
        running = self._running.get(name)
        if running is not None:
            running.feed.end_offers()

    @asynccontextmanager
    async def join(self, tenant: str, debate: str, news: asyncio.Event) -> AsyncGenerator[Feed, None]:
        """Join the feed of a debate while the block runs. `news` is set if there is more to read."""
        name = log_name(tenant, debate)
        running = self._running.get(name)
        if running is None or running.feed.failure is not None:
            queue, is_offered = self.wake_queues.for_tenant(tenant), name in self._offered
            feed = Feed(queue, self.max_kept_bytes, self._kept, is_offered=is_offered)
            # A new context: the deadline and the span of the first watcher must not apply to the others.
            task = asyncio.create_task(
                feed.run(self.log, tenant, debate, self._wake_seconds), context=Context()
            )
            running = self._running[name] = _RunningFeed(feed, task)
        running.feed.readers.add(news)
        try:
            yield running.feed
        finally:
            running.feed.readers.remove(news)
            if not running.feed.readers:
                if self._running.get(name) is running:
                    del self._running[name]
                await stop_task(running.task)
