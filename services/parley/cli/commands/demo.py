"""The command that plays an example debate."""

import asyncio
import shutil
import sys
from collections.abc import Sequence

import click

from parley.cli.command_name import command_name
from parley.cli.commands.interrupts import cancel_on_interrupt
from parley.cli.commands.playback import play_at_speed, timed_items
from parley.cli.printing import say
from parley.cli.terminal.display import DisplayState, choose_style, open_display
from parley.cli.terminal.rendered import print_markdown
from parley.cli.terminal.results import write_answer
from parley.client import Event
from parley.example import read_example
from parley.runtime.clock import SystemClock

__all__ = ["is_on_terminal", "play", "print_report"]


def play(speed: float) -> None:
    """Play the example as a live debate is shown, then print its answer; pause only where somebody watches."""
    example = read_example()
    _say_wrapped("An example. People wrote its texts; no model is asked, and nothing is stored.")
    _say_wrapped(f"Question: {example.debate.spec.question}")
    asyncio.run(_show_events(example.events, speed))
    write_answer(example.debate, None)
    _say_wrapped(f"All that was said: {command_name()} demo --report")
    _say_wrapped(f"A debate of your own: {command_name()} debate QUESTION")


async def _show_events(events: Sequence[Event], speed: float) -> None:
    """Show what was to be seen."""
    # Who only has the output wants no pauses in it, and none of the text in flight.
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


def _say_wrapped(text: str) -> None:
    """Say a line; on a terminal, break it between words."""
    if not is_on_terminal():
        say(text)
        return
    for line in click.wrap_text(text, shutil.get_terminal_size().columns).splitlines():
        say(line)
