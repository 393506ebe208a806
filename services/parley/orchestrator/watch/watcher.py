"""Watches a debate: its events after a sequence and then new ones, text between them, and heartbeats.

A watcher needs little memory: its places in the feed and in the text, which all watchers of the debate share.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, suppress
from time import monotonic
from typing import Final

from msgspec import Struct

from parley.orchestrator import metrics
from parley.orchestrator.log.envelope import GENESIS, Envelope, open_entry
from parley.orchestrator.log.reading import log_name, open_in_thread_if_large
from parley.orchestrator.watch.batches import Batch, put_together, yield_one_by_one
from parley.orchestrator.watch.deltas import DeltaBroker, DeltaForwarder
from parley.orchestrator.watch.feed import Feed, Feeds
from parley.orchestrator.watch.live_text import LiveText, TextListener
from parley.runtime.errors import ParleyError, not_found, resource_exhausted
from parley.storage.ports import Log
from parley.v1.orchestrator_pb2 import StepDelta

SLOW_READER = "SLOW_READER"
_PAGE = 8
"""Records that are read for a watcher that is behind: each may have some MB."""
_MAX_BEHIND = 64
"""A watcher that is more events behind gets no text."""
_NO_TEXT: Final = LiveText()
"""Of watchers that do not ask for text."""


class Heartbeat:
    """Sent if nothing was recorded for a while."""


WatchItem = Batch | Heartbeat


def slow_reader_error(last: int) -> ParleyError:
    """Return the error of a watcher that does not keep up."""
    message = f"this reader does not keep up; watch again after sequence {last}"
    return resource_exhausted(SLOW_READER, message, retry_after=0.0, metadata={"last_sequence": str(last)})


class DebateWatcher(Struct, frozen=True):
    """Watches debates at this replica."""

    log: Log
    feeds: Feeds
    deltas: DeltaBroker
    forwarder: DeltaForwarder

    async def watch(
        self, tenant: str, debate: str, after: int, *, text: bool, batches: bool = False
    ) -> AsyncGenerator[WatchItem, None]:
        """Yield the events after a sequence, in order and without gaps, until the last one. With `text`, also yield text.

        With `batches`, what is there at once is yielded together; else each event and each piece of text alone.

        A failed debate ends the stream too, unless it was resumed since.

        Raises:
            ParleyError: NOT_FOUND if the debate is deleted; `SLOW_READER` if the caller is so slow that events are no longer kept.
        """
        news, cursor = asyncio.Event(), _Cursor(log_name(tenant, debate), after)
        heartbeats = _HeartbeatTimer(self.feeds.silence_seconds)
        async with AsyncExitStack() as stack:
            stack.enter_context(metrics.count_watcher())
            listener = TextListener(_NO_TEXT)
            if text:
                listener = stack.enter_context(self.deltas.listen(tenant, debate, news))
                await stack.enter_async_context(self.forwarder.forward_while_watched(tenant, debate))
            feed = await stack.enter_async_context(self.feeds.join(tenant, debate, news))
            while True:
                news.clear()
                for batch in await self._next_batches(feed, listener, cursor, together=batches):
                    if isinstance(last := batch[-1], Envelope):
                        cursor.move_to(last)
                        heartbeats.reset()
                    yield batch
                if feed.last <= cursor.last and await self._is_over(feed, cursor):
                    return
                if heartbeats.is_due:
                    await self._check_log_exists(feed, debate, cursor.log)
                    heartbeats.reset()
                    yield Heartbeat()
                if feed.last <= cursor.last and not listener.is_behind:
                    cursor.caught_up = feed.is_complete
                    # The feed sets it now and then: a timer for each watcher would cost too much.
                    await news.wait()

    async def stream_text(self, tenant: str, debate: str) -> AsyncGenerator[WatchItem, None]:
        """Yield the text of a debate that this replica runs, piece by piece, for another replica, until closed."""
        news, heartbeats = asyncio.Event(), _HeartbeatTimer(self.feeds.silence_seconds)
        with self.deltas.listen(tenant, debate, news) as listener:
            while True:
                news.clear()
                for each in yield_one_by_one(listener.take(), ()):
                    yield each
                if heartbeats.is_due:
                    heartbeats.reset()
                    yield Heartbeat()
                if not listener.is_behind:
                    await heartbeats.wait(news)

    async def _next_batches(
        self, feed: Feed, listener: TextListener, cursor: "_Cursor", *, together: bool
    ) -> Sequence[Batch]:
        """Return what is there for a watcher. Those at one place get the same objects."""
        place = (*listener.span, cursor.last, feed.last, together)
        batches = feed.batches.get(place)
        if batches is not None:
            listener.skip()
            return batches
        pieces = _take_current(listener, feed, cursor.last)
        kept = feed.events_after(cursor.last)
        events = await self._read_next(cursor) if kept is None else kept
        batches = tuple(put_together(pieces, events) if together else yield_one_by_one(pieces, events))
        if kept is not None:
            feed.batches.keep(place, batches)
        return batches

    async def _read_next(self, cursor: "_Cursor") -> Sequence[Envelope]:
        """Read some events that the feed no longer keeps from the log, a page at a time."""
        if cursor.caught_up:
            raise slow_reader_error(cursor.last)
        if not cursor.hash:
            (record,) = await self.log.read(cursor.log, cursor.last - 1, 1)
            cursor.hash = open_entry(record.entries[cursor.last - record.first], None).hash
        return await open_in_thread_if_large(
            await self.log.read(cursor.log, cursor.last, _PAGE), cursor.last, cursor.hash
        )

    async def _check_log_exists(self, feed: Feed, debate: str, log: str) -> None:
        """Raise ParleyError if the log was deleted. Checks once a heartbeat for all watchers."""
        if monotonic() < feed.checked_at + self.feeds.silence_seconds:
            return
        feed.checked_at = monotonic()
        if feed.last and not await self.log.read(log, feed.last - 1, 1):
            feed.failure = not_found("debate", debate)
            raise feed.failure

    async def _is_over(self, feed: Feed, cursor: "_Cursor") -> bool:
        if feed.failure is not None:
            raise feed.failure.with_traceback(None)  # many watchers raise it
        if feed.closed or not (feed.is_complete and feed.failed):
            return feed.closed
        # Another replica may have resumed it, and its appends arrive here late.
        return not await self.log.read(cursor.log, cursor.last, 1)


class _Cursor:
    """The position of one watcher. `caught_up`: it has once read everything; from then on it must keep up."""

    def __init__(self, log: str, after: int) -> None:
        self.log = log
        self.last = after
        self.hash = b"" if after else GENESIS
        self.caught_up = False

    def move_to(self, event: Envelope) -> None:
        self.last, self.hash = event.sequence, event.hash


def _take_current(listener: TextListener, feed: Feed, after: int) -> tuple[StepDelta, ...]:
    """Take the text that is there, except that of ended attempts. A watcher that is far behind gets none."""
    if feed.last - after > _MAX_BEHIND:
        listener.skip()
    if not listener.is_behind:
        return ()
    return tuple(
        piece for piece in listener.take() if not feed.has_outcome(piece.key, piece.step_attempt, after)
    )


class _HeartbeatTimer:
    """The time of the next heartbeat. Text does not replace one, since it does not say how far the log is."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.reset()

    @property
    def is_due(self) -> bool:
        return monotonic() >= self._due

    def reset(self) -> None:
        self._due = monotonic() + self._seconds

    async def wait(self, news: asyncio.Event) -> None:
        """Wait for news, or until a heartbeat is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._due - monotonic()):
                await news.wait()
