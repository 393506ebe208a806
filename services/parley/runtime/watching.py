"""Watching a debate and reading its log over streams that break and are opened again."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Final, Protocol, TypeAlias, TypeVar

import grpc
from msgspec import Struct

from parley.runtime.backoff import Backoff
from parley.runtime.errors import from_rpc_error, internal, is_transport, unavailable
from parley.v1 import event_pb2, orchestrator_pb2

RECONNECTION: Final = Backoff(first=0.1, maximum=5.0, jitter=0.5)
"""Pauses before a broken connection is used again."""
_SILENCE_SECONDS: Final = 45.0
"""Heartbeats come every 15 s; a stream that misses three of them is broken."""
_RETRIED: Final = frozenset({"STORE_UNAVAILABLE", "SLOW_READER"})

Response = TypeVar("Response")
Response_co = TypeVar("Response_co", covariant=True)
Response_contra = TypeVar("Response_contra", contravariant=True)
Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class Stream(Protocol[Response_co]):
    """A stream of messages that can be cancelled."""

    def __aiter__(self) -> AsyncIterator[Response_co]: ...

    def cancel(self) -> bool:
        """Cancel the stream."""
        ...


class Reader(Protocol[Response_contra, Item_co]):
    """Reads messages and keeps the sequence of the last event."""

    last: int

    def read(self, response: Response_contra) -> Iterable[Item_co]:
        """Return the new items of a message. Raise ParleyError if an event is missing."""
        ...


WatchStream: TypeAlias = Stream[orchestrator_pb2.WatchDebateResponse]
LogStream: TypeAlias = Stream[orchestrator_pb2.ReadLogResponse]


class TextPiece(Struct, frozen=True):
    """More text of a step in flight.

    It is void as soon as the step's outcome, a new step attempt or a new route attempt arrives. `offset` counts the
    characters of the route attempt's text before this piece.
    """

    key: str
    step_attempt: int
    route_attempt: int
    offset: int
    text: str


def watch_events(
    open_after: Callable[[int], WatchStream], after: int, patience: float
) -> AsyncGenerator[event_pb2.Event | TextPiece, None]:
    """Yield the events of the streams that `open_after(sequence)` opens, each once and in order.

    A broken stream is opened again. Raise ParleyError if that brings no message for `patience` seconds, or
    when the service refuses.
    """
    return read_with_reconnects(open_after, _WatchReader(after), patience)


def read_stored_events(
    open_after: Callable[[int], LogStream], after: int, patience: float
) -> AsyncGenerator[bytes, None]:
    """Yield the stored bytes of every event after a sequence; otherwise as `watch_events`."""
    return read_with_reconnects(open_after, _LogReader(after), patience)


class _WatchReader:
    """Reads the messages of a watch."""

    def __init__(self, last: int) -> None:
        self.last = last

    def read(self, response: orchestrator_pb2.WatchDebateResponse) -> Iterator[event_pb2.Event | TextPiece]:
        match response.WhichOneof("message"):
            case "delta":
                yield _to_piece(response.delta)
            case "event":
                yield from self._read_event(response.event)
            case "events":
                yield from map(_to_piece, response.events.deltas)
                for event in response.events.events:
                    yield from self._read_event(event)

    def _read_event(self, event: event_pb2.Event) -> Iterator[event_pb2.Event]:
        if event.sequence > self.last + 1:
            raise internal(f"event {self.last + 1} is missing from the stream", reason="EVENT_GAP")
        if event.sequence > self.last:
            self.last += 1
            yield event


def _to_piece(delta: orchestrator_pb2.StepDelta) -> TextPiece:
    return TextPiece(delta.key, delta.step_attempt, delta.route_attempt, delta.offset, delta.text)


class _LogReader:
    """Reads parts of a log. They have no gaps, so that the count is the sequence at which to continue."""

    def __init__(self, last: int) -> None:
        self.last = last

    def read(self, response: orchestrator_pb2.ReadLogResponse) -> Iterator[bytes]:
        for stored in response.events:
            self.last += 1
            yield stored


async def read_with_reconnects(
    open_after: Callable[[int], Stream[Response]], reader: Reader[Response, Item], patience: float
) -> AsyncGenerator[Item, None]:
    """Yield the reader's items from the streams that `open_after(sequence)` opens.

    A stream that breaks, or is silent for 45 seconds, is opened again. Raise ParleyError if that brings no
    message for `patience` seconds, or when the service refuses.
    """
    pauses = _ReconnectPauses(patience)
    while True:
        try:
            async with aclosing(_read_until_silent(open_after(reader.last))) as stream:
                async for response in stream:
                    pauses.reset()
                    for item in reader.read(response):
                        yield item
        except grpc.aio.AioRpcError as broken:
            error = from_rpc_error(broken)
            if not (is_transport(error) or error.reason in _RETRIED):
                raise error from None
        except TimeoutError:
            error = unavailable("", "the stream fell silent")
        else:
            return
        if not await pauses.pause():
            raise error


class _ReconnectPauses:
    """Pauses between streams, longer each time, until patience ends."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._clock = asyncio.get_running_loop().time
        self._since: float | None = None

    def reset(self) -> None:
        self._since = None

    async def pause(self) -> bool:
        """Wait before the next stream; return False at once if the patience has ended."""
        now = self._clock()
        if self._since is None:
            self._since, self._pauses = now, RECONNECTION.pauses()
        if now - self._since >= self._patience:
            return False
        await asyncio.sleep(next(self._pauses))
        return True


async def _read_until_silent(stream: Stream[Response]) -> AsyncGenerator[Response, None]:
    messages, silence = aiter(stream), _Silence(stream)
    try:
        while (response := await silence.bound(anext(messages, None))) is not None:
            yield response
    finally:
        silence.stop()
        stream.cancel()


class _Silence:
    """Cancels a stream that lets its reader wait too long. One timer serves all its messages: to set one for each costs more than to read it."""

    def __init__(self, stream: Stream[object]) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._waits_since: float | None = None
        self._is_too_long = False
        self._timer = self._loop.call_later(_SILENCE_SECONDS, self._look)

    def stop(self) -> None:
        self._timer.cancel()

    async def bound(self, message: Awaitable[Item]) -> Item:
        """Return the stream's next message. Raise TimeoutError if the stream was cancelled because of its silence."""
        self._waits_since = self._loop.time()
        try:
            return await message
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._is_too_long and task is not None and not task.cancelling():
                raise TimeoutError from None
            raise
        finally:
            self._waits_since = None

    def _look(self) -> None:
        now = self._loop.time()
        ends = (now if self._waits_since is None else self._waits_since) + _SILENCE_SECONDS
        if now < ends:
            self._timer = self._loop.call_at(ends, self._look)
        else:
            self._is_too_long = True
            self._stream.cancel()
