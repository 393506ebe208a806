"""Following a debate, and reading its log, over connections that come and go."""

from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from parley.client import streams
from parley.runtime.errors import internal
from parley.v1 import event_pb2, orchestrator_pb2

__all__ = ["LogStream", "Stream", "TextPiece", "read_stored_events", "watch_events"]

_SILENCE_SECONDS: Final = 45.0
"""Heartbeats come every 15 s; a stream that says nothing for three of them is dead."""

Stream: TypeAlias = streams.Stream[orchestrator_pb2.WatchDebateResponse]
LogStream: TypeAlias = streams.Stream[orchestrator_pb2.ReadLogResponse]


@dataclass(frozen=True, slots=True)
class TextPiece:
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
    open_after: Callable[[int], Stream],
    after: int,
    patience: float,
    silence: float = _SILENCE_SECONDS,
) -> AsyncGenerator[event_pb2.Event | TextPiece, None]:
    """Yield what the streams that `open_after(sequence)` opens say, every event once and in order.

    A stream that breaks is opened again. Raise ParleyError once that brought no message for `patience` seconds, or
    when the service refuses.
    """
    return streams.read_with_reconnects(open_after, _WatchReader(after), patience, silence)


def read_stored_events(
    open_after: Callable[[int], LogStream], after: int, patience: float
) -> AsyncGenerator[bytes, None]:
    """Yield the stored bytes of every event after a sequence; otherwise as `watch_events`."""
    return streams.read_with_reconnects(open_after, _LogReader(after), patience, _SILENCE_SECONDS)


class _WatchReader:
    """Reads what a watch says."""

    def __init__(self, last: int) -> None:
        self.last = last

    def read(self, response: orchestrator_pb2.WatchDebateResponse) -> Iterator[event_pb2.Event | TextPiece]:
        kind = response.WhichOneof("message")
        if kind == "delta":
            delta = response.delta
            yield TextPiece(delta.key, delta.step_attempt, delta.route_attempt, delta.offset, delta.text)
        if kind != "event" or response.event.sequence <= self.last:
            return
        if response.event.sequence != self.last + 1:
            raise internal(f"event {self.last + 1} is missing from the stream", reason="EVENT_GAP")
        self.last += 1
        yield response.event


class _LogReader:
    """Reads parts of a log. They have no gaps, so that counting tells where a broken stream goes on."""

    def __init__(self, last: int) -> None:
        self.last = last

    def read(self, response: orchestrator_pb2.ReadLogResponse) -> Iterator[bytes]:
        for stored in response.events:
            self.last += 1
            yield stored
