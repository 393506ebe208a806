"""A debate's log as the watchers of one replica share it: followed, checked and parsed once, however many they are."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from contextvars import Context
from dataclasses import dataclass, field
from time import monotonic

from parley.orchestrator.log.envelope import GENESIS, Envelope
from parley.orchestrator.log.journal import log_name, open_in_thread_if_large
from parley.orchestrator.watch.wake_queue import WakeGroup, WakeQueue, WakeQueues
from parley.runtime.tasks import stop_task
from parley.storage.ports import Log
from parley.v1.event_pb2 import Closed, Concluded, DebateFailed, Resumed, StepFailed, StepSucceeded

__all__ = ["Feed", "Feeds"]

_PAGE = 200
_MAX_RETURNED = 64
_WAKES_PER_HEARTBEAT = 4
"""How often a reader is woken, in the time within which it hears a sign of life."""
_MAX_KEPT_BYTES = 8_000_000
"""Stored bytes of events that are kept; in memory they take about twice as much."""


class Feed:
    """The newest events of one debate, and those who wait for more.

    Attributes:
        last: Sequence of the newest event that was read; 0 before any.
        epoch: The claim it was written under.
        whole: Whether all that the log held at first has been read.
        closed: Whether the debate is closed. Nothing comes after that.
        failed: Whether it has failed and was neither resumed nor cancelled since.
        failure: Why the log could not be read any further, if that is so.
        readers: Who hears when there is more.
        looked_at: When somebody last looked whether the log is still there, by the monotonic clock.
    """

    def __init__(self, turn: WakeQueue, max_kept_bytes: int = _MAX_KEPT_BYTES) -> None:
        """Begin before the first event; wake readers in their `turn`, and keep so many stored bytes of the newest events."""
        self.last = 0
        self.epoch = 0
        self.is_complete = self.closed = self.failed = False
        self.checked_at = monotonic()
        self.failure: Exception | None = None
        self._max_kept_bytes = max_kept_bytes
        self._events: list[Envelope] = []
        self._kept_bytes = 0
        self._outcomes: dict[str, tuple[int, int]] = {}
        self.readers = WakeGroup(turn)

    def events_after(self, sequence: int) -> Sequence[Envelope] | None:
        """Return some of the events after a sequence, or None where the next one is no longer kept."""
        if not self._events or sequence >= self.last:
            return ()
        place = sequence + 1 - self._events[0].sequence
        return self._events[place : place + _MAX_RETURNED] if place >= 0 else None

    def has_outcome(self, step: str, attempt: int, through: int) -> bool:
        """Tell whether the events up to a sequence hold the outcome of a step's attempt, or of a later one."""
        ended, sequence = self._outcomes.get(step, (0, 0))
        return ended >= attempt and sequence <= through

    async def run(self, log: Log, tenant: str, debate: str, wake_seconds: float) -> None:
        """Read the log and follow it until cancelled, or until it cannot be read: then `failure` says why.

        Readers are woken every `wake_seconds` without news too, to see what else is due: one timer for all of them.
        """
        async with asyncio.TaskGroup() as tasks:
            waking = tasks.create_task(self._wake_readers(wake_seconds))
            await self._follow(log, tenant, debate)
            waking.cancel()

    async def _wake_readers(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            self.readers.notify()

    async def _follow(self, log: Log, tenant: str, debate: str) -> None:
        name, before = log_name(tenant, debate), GENESIS
        try:
            while not self.is_complete:
                records = await log.read(name, self.last, _PAGE)
                before = self._append(await open_in_thread_if_large(records, self.last, before), before)
                self.is_complete = len(records) < _PAGE
            self.readers.notify()
            async with aclosing(log.follow(name, self.last)) as following:
                async for record in following:
                    before = self._append(await open_in_thread_if_large([record], self.last, before), before)
        except Exception as error:  # noqa: BLE001 - whatever it was, those who wait must hear it
            self.failure = error
            self.readers.notify()

    def _append(self, events: Sequence[Envelope], before: bytes) -> bytes:
        for event in events:
            self._events.append(event)
            self._kept_bytes += len(event.entry)
            self.last, self.epoch, before = event.sequence, event.epoch, event.hash
            self._apply(event)
        self._trim()
        self.readers.notify()
        return before

    def _apply(self, event: Envelope) -> None:
        match event.payload:
            case Closed():
                self.closed = True
            case DebateFailed():
                self.failed = True
            case Resumed() | Concluded():  # one that is cancelled is still to be closed
                self.failed = False
            case StepSucceeded() | StepFailed():
                self._outcomes[event.key] = (event.attempt, event.sequence)
            case _:
                pass

    def _trim(self) -> None:
        drop = 0
        while self._kept_bytes > self._max_kept_bytes and drop < len(self._events) - 1:
            self._kept_bytes -= len(self._events[drop].entry)
            drop += 1
        del self._events[:drop]


@dataclass(slots=True)
class _RunningFeed:
    feed: Feed
    task: asyncio.Task[None]


@dataclass(slots=True)
class Feeds:
    """The feeds of the debates that are being watched here.

    Attributes:
        heartbeat_seconds: After so long without news a watcher hears a sign of life.
    """

    log: Log
    max_kept_bytes: int = _MAX_KEPT_BYTES
    heartbeat_seconds: float = 15.0
    _running: dict[str, _RunningFeed] = field(default_factory=dict)
    _wake_queues: WakeQueues = field(default_factory=WakeQueues)

    @property
    def silence_seconds(self) -> float:
        """How long it has to be silent for a sign of life, so that it comes in time though readers look only when they are woken."""
        return self.heartbeat_seconds - self._wake_seconds

    @property
    def _wake_seconds(self) -> float:
        return self.heartbeat_seconds / _WAKES_PER_HEARTBEAT

    @asynccontextmanager
    async def join(self, tenant: str, debate: str, news: asyncio.Event) -> AsyncGenerator[Feed, None]:
        """Share a debate's feed while the block runs; `news` is set whenever there is more."""
        name = log_name(tenant, debate)
        running = self._running.get(name)
        if running is None or running.feed.failure is not None:
            feed = Feed(self._wake_queues.for_tenant(tenant), self.max_kept_bytes)
            # A context of its own: the deadline and the span of the first watcher are not the others'.
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
