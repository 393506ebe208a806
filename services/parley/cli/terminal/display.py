"""A debate on stderr while it is held: in place on a terminal, as lines elsewhere, or not at all."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Final, Protocol

from parley.cli.printing import say
from parley.cli.progress_style import Style
from parley.cli.terminal.agents_at_work import AgentsAtWork, event_seen, text_seen
from parley.cli.terminal.capability import is_capable
from parley.cli.terminal.live_view import LiveView
from parley.cli.terminal.painter import Painter
from parley.cli.terminal.progress import Progress, advance
from parley.cli.terminal.progress_lines import news
from parley.client import Event, TextPiece, kind_of

__all__ = ["VIEWS", "Display", "Seen", "View", "display", "style_of"]

_STAYING: Final = frozenset(
    {
        "checkpoint_closed",
        "checkpoint_expired",
        "checkpoint_opened",
        "limit_reached",
        "round_assessed",
        "step_failed",
        "step_succeeded",
        "wait_started",
        "warned",
    }
)
"""Kinds of events whose line stays on a terminal, if they have one."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What has been seen of a debate."""

    progress: Progress = field(default_factory=Progress)
    agents: AgentsAtWork = field(default_factory=dict)


class Display(Protocol):
    """Shows a debate as its events come.

    Attributes:
        shows_text: Whether text of steps in flight is shown, and worth being asked for.
    """

    seen: Seen
    shows_text: bool

    def show(self, event: Event, *, quiet: bool = False) -> None:
        """Take an event in; a quiet one leaves no line behind."""
        ...

    def show_text(self, piece: TextPiece) -> None:
        """Take text of a step in flight in."""
        ...

    def say(self, text: str) -> None:
        """Say one line that stays."""
        ...

    def aside(self) -> AbstractContextManager[None]:
        """Show nothing in place while somebody else has the terminal."""
        ...


def style_of(asked: Style | None) -> Style:
    """Return how progress is shown where this was asked for: live only on a terminal that can show it."""
    capable = is_capable(sys.stderr)
    if asked is None:
        return "live" if capable else "lines"
    return "lines" if asked == "live" and not capable else asked


def display(seen: Seen, style: Style) -> AbstractContextManager[Display]:
    """Return a block with the display, from what was seen on; what it shows in place is gone after the block."""
    return VIEWS[style](seen)


class _Lines:
    shows_text = False

    def __init__(self, seen: Seen, *, tells: bool) -> None:
        self.seen = seen
        self._tells = tells

    def show(self, event: Event, *, quiet: bool = False) -> None:
        line = None if quiet or not self._tells else news(self.seen.progress, event)
        self.seen = Seen(advance(self.seen.progress, event), event_seen(self.seen.agents, event))
        if line is not None:
            indent = "  " if line.startswith("  ") else ""
            say(line, indent)

    def show_text(self, piece: TextPiece) -> None:
        pass

    def say(self, text: str) -> None:
        say(text)

    def aside(self) -> AbstractContextManager[None]:
        return nullcontext()


class _Live:
    shows_text = True

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        view = LiveView()
        # What was seen is replaced as a whole: the painter's thread never meets it half changed.
        self.painter = Painter(
            lambda width, height: view.picture(self.seen.progress, self.seen.agents, width, height)
        )

    def show(self, event: Event, *, quiet: bool = False) -> None:
        line = None if quiet else news(self.seen.progress, event)
        self.seen = Seen(advance(self.seen.progress, event), event_seen(self.seen.agents, event))
        if line is not None and kind_of(event) in _STAYING:
            self.say(line)

    def show_text(self, piece: TextPiece) -> None:
        self.seen = Seen(self.seen.progress, text_seen(self.seen.agents, piece))

    def say(self, text: str) -> None:
        self.painter.say(text)

    def aside(self) -> AbstractContextManager[None]:
        return self.painter.aside()


@contextmanager
def _live(seen: Seen) -> Iterator[Display]:
    live = _Live(seen)
    with live.painter:
        yield live


View = Callable[[Seen], AbstractContextManager[Display]]
"""Shows a debate in one way, from what was seen on."""

VIEWS: Final[dict[Style, View]] = {
    "live": _live,
    "lines": lambda seen: nullcontext(_Lines(seen, tells=True)),
    "none": lambda seen: nullcontext(_Lines(seen, tells=False)),
}
"""By the names in `progress_style`."""
