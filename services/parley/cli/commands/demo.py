"""The command that plays an example debate."""

import asyncio
import shutil
import sys
from collections.abc import Sequence

import click

from parley.cli.command_name import command_name
from parley.cli.commands.interrupts import left_in_order
from parley.cli.commands.playback import moments, paced
from parley.cli.printing import say
from parley.cli.terminal.display import Seen, display, style_of
from parley.cli.terminal.rendered import print_markdown
from parley.cli.terminal.results import put_answer
from parley.client import Event
from parley.example import example_debate
from parley.runtime.clock import SystemClock

__all__ = ["is_watched", "play", "print_report"]


def play(speed: float) -> None:
    """Play the example as a live debate is shown, then print its answer; pause only where somebody watches."""
    example = example_debate()
    _tell("An example. People wrote its texts; no model is asked, and nothing is stored.")
    _tell(f"Question: {example.debate.spec.question}")
    asyncio.run(_show(example.events, speed))
    put_answer(example.debate, None)
    _tell(f"All that was said: {command_name()} demo --report")
    _tell(f"A debate of your own: {command_name()} debate QUESTION")


async def _show(events: Sequence[Event], speed: float) -> None:
    """Show what was to be seen."""
    # Who only has the output wants no pauses in it, and none of the text in flight.
    played = moments(events) if is_watched() else [(0.0, event) for event in events]
    with left_in_order(), display(Seen(), style_of(None)) as shown:
        async for seen in paced(played, speed, SystemClock()):
            if isinstance(seen, Event):
                shown.show(seen)
            else:
                shown.show_text(seen)


def print_report() -> None:
    """Print the report of the example."""
    print_markdown(example_debate().report)


def is_watched() -> bool:
    """Return whether all output goes to a terminal."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def _tell(text: str) -> None:
    """Say a line; on a terminal, break it between words."""
    if not is_watched():
        say(text)
        return
    for line in click.wrap_text(text, shutil.get_terminal_size().columns).splitlines():
        say(line)
