"""A recorded debate as it came: its events, and between them the text of steps in flight, piece by piece."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Final

from parley.client import Event, TextPiece, event_payload
from parley.runtime.clock import Clock
from parley.v1.event_pb2 import StepStarted, StepSucceeded

__all__ = ["TimedItem", "play_at_speed", "timed_items"]

_PIECES_A_SECOND: Final = 10
_SILENT_SHARE: Final = 0.25
"""Of the time that a step takes: until its first words come."""

TimedItem = tuple[float, Event | TextPiece]
"""Something that is seen, and when: in seconds from the first event on."""


def timed_items(events: Sequence[Event]) -> list[TimedItem]:
    """Return what was to be seen, in order. Where text came while a step ran is not recorded: it is spread evenly."""
    found: list[TimedItem] = []
    began: dict[str, float] = {}
    for event in events:
        at = _seconds(event) - _seconds(events[0])
        found.append((at, event))
        match event_payload(event):
            case StepStarted():
                began[event.key] = at
            case StepSucceeded(reply=reply) if event.key in began and reply.text:
                found += _split_text(event, reply.text, began[event.key], at)
    return sorted(found, key=lambda moment: moment[0])


async def play_at_speed(
    played: Iterable[TimedItem], speed: float, clock: Clock
) -> AsyncIterator[Event | TextPiece]:
    """Yield what is seen when it is due, so many times as fast."""
    began = clock.monotonic()
    for at, seen in played:
        await clock.sleep(began + at / speed - clock.monotonic())
        yield seen


def _split_text(event: Event, text: str, began: float, ended: float) -> Iterator[TimedItem]:
    """Yield a step's text as it came, all of it before the step's end."""
    first = began + (ended - began) * _SILENT_SHARE
    count = max(1, int((ended - first) * _PIECES_A_SECOND))
    size = -(-len(text) // count)
    for number, offset in enumerate(range(0, len(text), size)):
        at = first + (ended - first) * number / count
        yield at, TextPiece(event.key, event.attempt, 1, offset, text[offset : offset + size])


def _seconds(event: Event) -> float:
    return event.time.ToNanoseconds() / 1e9
