"""Watches a debate: its events after a sequence and then new ones, text between them, and heartbeats.

A watcher needs little memory: its cursor in the feed that all watchers of the debate share, and a short queue of text.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from time import monotonic

from parley.orchestrator import metrics
from parley.orchestrator.log.bare_spec import bare_event
from parley.orchestrator.log.envelope import GENESIS, Envelope, open_entry
from parley.orchestrator.log.journal import log_name, open_in_thread_if_large
from parley.orchestrator.watch.deltas import DeltaBroker, DeltaForwarder, WaitingPieces
from parley.orchestrator.watch.feed import Feed, Feeds
from parley.runtime.errors import ParleyError, not_found, resource_exhausted
from parley.storage.ports import Log
from parley.v1.orchestrator_pb2 import StepDelta

SLOW_READER = "SLOW_READER"
_PAGE = 8
"""Records that are read for a watcher that is behind: each may have some MB."""
_MAX_BEHIND = 64
"""A watcher that is more events behind gets no text."""
_BATCH_BYTES = 64 * 1024
"""Bytes of events that are sent together."""


class Heartbeat:
    """Sent if nothing was recorded for a while."""


EventBatch = tuple[Envelope, ...]
"""Two or more events that follow on each other."""
WatchItem = Envelope | EventBatch | StepDelta | Heartbeat


def slow_reader_error(last: int) -> ParleyError:
    """Return the error of a watcher that does not keep up."""
    message = f"this reader does not keep up; watch again after sequence {last}"
    return resource_exhausted(SLOW_READER, message, retry_after=0.0, metadata={"last_sequence": str(last)})


@dataclass(frozen=True, slots=True)
class DebateWatcher:
    """Watches debates at this replica."""

    log: Log
    feeds: Feeds
    deltas: DeltaBroker
    forwarder: DeltaForwarder

    async def watch(
        self, tenant: str, debate: str, after: int, *, text: bool, batches: bool = False
    ) -> AsyncGenerator[WatchItem, None]:
        """Yield the events after a sequence, in order and without gaps, until the last one. With `text`, also yield text.

        With `batches`, events that are there at once are yielded together.

        A failed debate ends the stream too, unless it was resumed since.

        Raises:
            ParleyError: NOT_FOUND if the debate is deleted; `SLOW_READER` if the caller is so slow that events are no longer kept.
        """
        news, cursor = asyncio.Event(), _Cursor(log_name(tenant, debate), after)
        heartbeats = _HeartbeatTimer(self.feeds.silence_seconds)
        async with AsyncExitStack() as stack:
            stack.enter_context(metrics.count_watcher())
            pieces = WaitingPieces()
            if text:
                pieces = stack.enter_context(self.deltas.listen(tenant, debate, news))
                await stack.enter_async_context(self.forwarder.forward_while_watched(tenant, debate))
            feed = await stack.enter_async_context(self.feeds.join(tenant, debate, news))
            while True:
                news.clear()
                for piece in _take_current(pieces, feed, cursor.last):
                    yield piece
                for batch in _in_batches(
                    await self._next_events(feed, cursor), most=_BATCH_BYTES if batches else 0
                ):
                    cursor.move_to(batch[-1])
                    heartbeats.reset()
                    yield batch if len(batch) > 1 else batch[0]
                if feed.last <= cursor.last and await self._is_over(feed, cursor):
                    return
                if heartbeats.is_due:
                    await self._check_log_exists(feed, debate, cursor.log)
                    heartbeats.reset()
                    yield Heartbeat()
                if feed.last <= cursor.last and not pieces:
                    cursor.caught_up = feed.is_complete
                    # The feed sets it now and then: a timer for each watcher would cost too much.
                    await news.wait()

    async def stream_text(self, tenant: str, debate: str) -> AsyncGenerator[StepDelta | Heartbeat, None]:
        """Yield the text of a debate that this replica runs, for another replica, until closed."""
        news, heartbeats = asyncio.Event(), _HeartbeatTimer(self.feeds.silence_seconds)
        with self.deltas.listen(tenant, debate, news) as pieces:
            while True:
                news.clear()
                for piece in _take_waiting(pieces):
                    yield piece
                if heartbeats.is_due:
                    heartbeats.reset()
                    yield Heartbeat()
                if not pieces:
                    await heartbeats.wait(news)

    async def _next_events(self, feed: Feed, cursor: "_Cursor") -> Sequence[Envelope]:
        """Return some of the next events. Those that the feed no longer keeps are read from the log, a page at a time."""
        events = feed.events_after(cursor.last)
        if events is not None:
            return events
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


def _in_batches(events: Sequence[Envelope], most: int) -> Iterator[EventBatch]:
    """Yield events as they are sent, in batches of at most so many bytes; a larger one is alone."""
    batch: list[Envelope] = []
    size = 0
    for event in map(bare_event, events):
        bytes_more = len(event.entry) or event.message.ByteSize()
        if batch and size + bytes_more > most:
            yield tuple(batch)
            batch, size = [], 0
        batch.append(event)
        size += bytes_more
    if batch:
        yield tuple(batch)


class _Cursor:
    """The position of one watcher. `caught_up`: it has once read everything; from then on it must keep up."""

    def __init__(self, log: str, after: int) -> None:
        self.log = log
        self.last = after
        self.hash = b"" if after else GENESIS
        self.caught_up = False

    def move_to(self, event: Envelope) -> None:
        self.last, self.hash = event.sequence, event.hash


def _take_current(pieces: WaitingPieces, feed: Feed, after: int) -> Iterator[StepDelta]:
    """Remove and yield the waiting text, except that of ended attempts. A watcher that is far behind gets none."""
    if feed.last - after > _MAX_BEHIND:
        pieces.clear()
    for piece in _take_waiting(pieces):
        if not feed.has_outcome(piece.key, piece.step_attempt, after):
            yield piece


def _take_waiting(pieces: WaitingPieces) -> Iterator[StepDelta]:
    """Remove and yield the pieces that wait now, joined by text. Later pieces wait, so that they do not delay events."""
    latest: dict[tuple[str, int, int], list[StepDelta]] = {}
    runs: list[list[StepDelta]] = []
    while pieces:
        piece = pieces.popleft()
        text = piece.key, piece.step_attempt, piece.route_attempt
        run = latest.get(text)
        if run and run[-1].offset + len(run[-1].text) == piece.offset:
            run.append(piece)
        else:
            latest[text] = [piece]
            runs.append(latest[text])
    for run in runs:
        yield run[0] if len(run) == 1 else _join(run)


def _join(run: Sequence[StepDelta]) -> StepDelta:
    """Return pieces that follow on each other as one; the pieces are shared with other watchers."""
    joined = StepDelta()
    joined.CopyFrom(run[0])
    joined.text = "".join(piece.text for piece in run)
    return joined


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
