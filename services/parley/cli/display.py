"""The progress of a debate on stderr: in place on a terminal, plain lines otherwise."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from parley.cli.progress import Progress, advance, news, working_text
from parley.client import DebateEvent

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.spinner import Spinner

__all__ = ["Display", "display", "say", "status_line"]

_STAYING: Final = frozenset(
    {
        "checkpoint_closed",
        "checkpoint_expired",
        "checkpoint_opened",
        "limit_reached",
        "step_failed",
        "step_succeeded",
        "wait_started",
        "warned",
    }
)
"""Kinds of events whose line stays on a terminal, if they have one."""


class Display(Protocol):
    """Shows a debate as its events come."""

    progress: Progress

    def show(self, event: DebateEvent, *, quiet: bool = False) -> None:
        """Takes an event in; a quiet one leaves no line behind."""
        ...

    def say(self, text: str) -> None:
        """Says one line that stays."""
        ...


def say(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"{' '.join(text.split())}\n")
    sys.stderr.flush()


@contextmanager
def display(progress: Progress) -> Iterator[Display]:
    """The display that fits stderr, from a progress on; what it shows in place is gone after the block."""
    if not sys.stderr.isatty():
        yield _Lines(progress)
        return
    from rich.console import Console
    from rich.live import Live

    shown = _InPlace(progress)
    console = Console(stderr=True)
    with Live(get_renderable=shown.render, console=console, transient=True, refresh_per_second=8) as live:
        shown.console = live.console
        yield shown


class _Lines:
    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def show(self, event: DebateEvent, *, quiet: bool = False) -> None:
        line = None if quiet else news(self.progress, event)
        self.progress = advance(self.progress, event)
        if line is not None:
            sys.stderr.write(f"{line.rstrip()}\n")
            sys.stderr.flush()

    def say(self, text: str) -> None:
        say(text)


class _InPlace:
    def __init__(self, progress: Progress) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)
        self.progress = progress
        self._began = time.monotonic()
        self._spinners: dict[str, Spinner] = {}

    def show(self, event: DebateEvent, *, quiet: bool = False) -> None:
        line = None if quiet else news(self.progress, event)
        self.progress = advance(self.progress, event)
        if line is not None and event.kind in _STAYING:
            self.say(line.strip())

    def say(self, text: str) -> None:
        self.console.print(" ".join(text.split()), markup=False, highlight=False, soft_wrap=True)

    def render(self) -> "RenderableType":
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.text import Text

        progress = self.progress
        lines: list[RenderableType] = [
            Text(status_line(progress, time.monotonic() - self._began), style="bold")
        ]
        lines += [Text(f"  {each.name} {each.done}/{each.expected}") for each in progress.phases]
        for key, work in progress.working.items():
            # A spinner keeps its own time: one that is made anew with every picture would stand still.
            lines.append(self._spinners.setdefault(key, Spinner("dots", text=working_text(work))))
        return Group(*lines)


def status_line(progress: Progress, seconds: float) -> str:
    """`Round 2/3 · 1:05 · 3,456 tokens · $0.0123`."""
    place = f"Round {progress.round}/{progress.rounds}" if progress.round else "Starting"
    if any(work.activity == "synthesis" for work in progress.working.values()):
        place = "Synthesis"
    if progress.checkpoint:
        place = "Waiting for a person"
    if progress.state in {"paused", "failed", "completed", "cancelled"}:
        place = progress.state.capitalize()
    parts = [place, f"{int(seconds) // 60}:{int(seconds) % 60:02}"]
    parts.append(f"{progress.input_tokens + progress.output_tokens:,} tokens")
    if progress.cost_micros:
        parts.append(f"${progress.cost_micros / 1e6:.4f}")
    return " · ".join(parts)
