"""Following a debate over connections that come and go."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

import grpc

from parley.client.events import DebateEvent, decode
from parley.runtime.errors import from_rpc_error, internal, is_transport, unavailable
from parley.v1 import orchestrator_pb2

__all__ = ["TextPiece", "follow"]

_SILENCE_SECONDS: Final = 45.0
"""Heartbeats come every 15 s; a stream that says nothing for three of them is dead."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_TRY_AGAIN: Final = frozenset({"STORE_UNAVAILABLE", "SLOW_READER"})


@dataclass(frozen=True, slots=True)
class TextPiece:
    """More text of a step in flight.

    It is void as soon as the step's outcome or a new attempt or try arrives. `offset` counts the characters of the
    try's text before this piece.
    """

    key: str
    attempt: int
    try_number: int
    offset: int
    text: str


class Stream(Protocol):
    """A stream of messages that can be given up."""

    def __aiter__(self) -> AsyncIterator[orchestrator_pb2.WatchDebateResponse]: ...

    def cancel(self) -> bool: ...


async def follow(
    open_after: Callable[[int], Stream],
    after: int,
    patience: float,
    silence: float = _SILENCE_SECONDS,
) -> AsyncIterator[DebateEvent | TextPiece]:
    """Yields what the streams that `open_after(sequence)` opens say, every event once and in order.

    A stream that breaks is opened again; raises ParleyError once that brought no message for `patience` seconds, or
    when the service refuses.
    """
    reader = _Reader(after)
    pauses = _Pauses(patience)
    while True:
        try:
            async with aclosing(_until_silent(open_after(reader.last), silence)) as stream:
                async for response in stream:
                    pauses.reset()
                    piece = reader.read(response)
                    if piece is not None:
                        yield piece
        except grpc.aio.AioRpcError as broken:
            error = from_rpc_error(broken)
            if not (is_transport(error) or error.reason in _TRY_AGAIN):
                raise error from None
        except TimeoutError:
            error = unavailable("", "the stream fell silent")
        else:
            return
        if not await pauses.pause():
            raise error


class _Reader:
    """Reads messages, and knows the sequence of the last event among them."""

    def __init__(self, last: int) -> None:
        self.last = last

    def read(self, response: orchestrator_pb2.WatchDebateResponse) -> DebateEvent | TextPiece | None:
        kind = response.WhichOneof("message")
        if kind == "delta":
            delta = response.delta
            return TextPiece(delta.key, delta.attempt, delta.try_number, delta.offset, delta.text)
        if kind != "event" or response.event.sequence <= self.last:
            return None
        if response.event.sequence != self.last + 1:
            raise internal(f"event {self.last + 1} is missing from the stream", reason="EVENT_GAP")
        self.last += 1
        return decode(response.event)


class _Pauses:
    """Pauses between tries, longer each time, until patience ends."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._clock = asyncio.get_running_loop().time
        self.reset()

    def reset(self) -> None:
        self._next = _FIRST_PAUSE
        self._since: float | None = None

    async def pause(self) -> bool:
        """Waits, unless patience has ended: then it returns False at once."""
        now = self._clock()
        if self._since is None:
            self._since = now
        if now - self._since >= self._patience:
            return False
        await asyncio.sleep(self._next * random.uniform(0.5, 1.0))  # noqa: S311 (jitter)
        self._next = min(self._next * 2, _LONGEST_PAUSE)
        return True


async def _until_silent(
    stream: Stream, seconds: float
) -> AsyncGenerator[orchestrator_pb2.WatchDebateResponse, None]:
    messages = aiter(stream)
    try:
        while True:
            async with asyncio.timeout(seconds):
                response = await anext(messages, None)
            if response is None:
                return
            yield response
    finally:
        stream.cancel()
