"""The command that plays an example debate: its events, and between them the text of steps in flight, piece by piece."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Final

from parley.cli.command_name import command_name
from parley.cli.commands.interrupts import cancel_on_interrupt
from parley.cli.printing import say
from parley.cli.terminal.display import DisplayState, choose_style, open_display
from parley.cli.terminal.markdown import print_markdown
from parley.cli.terminal.results import write_answer
from parley.client import Event, TextPiece, event_payload
from parley.example import read_example
from parley.runtime.clock import Clock, SystemClock
from parley.v1.event_pb2 import StepStarted, StepSucceeded


def play(speed: float) -> None:
    """Play the example like a live debate, then print its answer; pause only on a terminal."""
    example = read_example()
    say("An example. People wrote its texts; no model is asked, and nothing is stored.")
    say(f"Question: {example.debate.spec.question}")
    asyncio.run(_show_events(example.events, speed))
    write_answer(example.debate, None)
    say(f"The whole debate: {command_name()} demo --report")
    say(f"A debate of your own: {command_name()} debate QUESTION")


async def _show_events(events: Sequence[Event], speed: float) -> None:
    """Show the events at their times."""
    # Output to a file or a pipe needs no pauses and no text in flight.
    played = timed_items(events) if is_on_terminal() else [(0.0, event) for event in events]
    with cancel_on_interrupt(), open_display(DisplayState(), choose_style(None)) as shown:
        async for seen in play_at_speed(played, speed, SystemClock()):
            if isinstance(seen, Event):
                shown.show(seen)
            else:
                shown.show_text(seen)


def print_report() -> None:
    """Print the report of the example."""
    print_markdown(read_example().report)


def is_on_terminal() -> bool:
    """Return whether all output goes to a terminal."""
    return sys.stdout.isatty() and sys.stderr.isatty()


_PIECES_A_SECOND: Final = 10
_SILENT_SHARE: Final = 0.25
"""The share of a step's time before its first words."""

TimedItem = tuple[float, Event | TextPiece]
"""An event or a piece of text, and its time in seconds after the first event."""


def timed_items(events: Sequence[Event]) -> list[TimedItem]:
    """Return events and pieces of text in order. The times of the pieces are not recorded: they are spread evenly over the step."""
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
    """Yield each item when it is due, `speed` times as fast."""
    began = clock.monotonic()
    for at, seen in played:
        await clock.sleep(began + at / speed - clock.monotonic())
        yield seen


def _split_text(event: Event, text: str, began: float, ended: float) -> Iterator[TimedItem]:
    """Yield a step's text in pieces, all of them before the step's end."""
    first = began + (ended - began) * _SILENT_SHARE
    count = max(1, int((ended - first) * _PIECES_A_SECOND))
    size = -(-len(text) // count)
    for number, offset in enumerate(range(0, len(text), size)):
        at = first + (ended - first) * number / count
        yield at, TextPiece(event.key, event.attempt, 1, offset, text[offset : offset + size])


def _seconds(event: Event) -> float:
    return event.time.ToNanoseconds() / 1e9
