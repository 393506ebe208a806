"""A debate on stderr while it runs: in place on a terminal, as lines elsewhere, or not at all."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from parley.cli.person import can_redraw
from parley.cli.printing import Style, say
from parley.cli.terminal.event_lines import next_phase_line, progress_line
from parley.cli.terminal.live_view import LiveView
from parley.cli.terminal.painter import Painter
from parley.cli.terminal.progress import (
    AgentsProgress,
    DebateProgress,
    advance,
    apply_event,
    apply_text,
)
from parley.client import Event, TextPiece, event_kind
from parley.runtime.clock import Clock, SystemClock
from parley.runtime.debaters import Debaters

_PERMANENT_KINDS: Final = frozenset(
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


class DisplayState(Struct, frozen=True):
    """The state of a debate that a display shows; `agents` and `question` stay empty in one that does not show them."""

    progress: DebateProgress = field(default_factory=DebateProgress)
    agents: AgentsProgress = field(default_factory=dict)
    question: str = ""
    debaters: Debaters = field(default_factory=Debaters)


class Display(Protocol):
    """Shows a debate as its events come.

    Attributes:
        shows_text: Whether text of steps in flight is shown, and must be requested.
    """

    state: DisplayState
    shows_text: bool

    def show(self, event: Event, *, quiet: bool = False) -> None:
        """Apply an event; print no line if `quiet`."""
        ...

    def show_text(self, piece: TextPiece) -> None:
        """Apply text of a step in flight."""
        ...

    def say(self, text: str) -> None:
        """Print one line that stays."""
        ...

    def release_terminal(self) -> AbstractContextManager[None]:
        """Draw nothing while the block uses the terminal."""
        ...


def choose_style(asked: Style | None) -> Style:
    """Return the style to use for the requested one: live only on a terminal that can redraw."""
    capable = can_redraw(sys.stderr)
    if asked is None:
        return "live" if capable else "lines"
    return "lines" if asked == "live" and not capable else asked


def open_display(seen: DisplayState, style: Style) -> AbstractContextManager[Display]:
    """Open the display with this state; what it draws in place is erased after the block."""
    return VIEWS[style](seen)


class _LineDisplay:
    shows_text = False

    def __init__(self, seen: DisplayState, *, tells: bool) -> None:
        self.state = seen
        self._tells = tells

    def show(self, event: Event, *, quiet: bool = False) -> None:
        state, lines = self.state, tuple[str | None, ...]()
        if self._tells and not quiet:
            lines = (progress_line(state.progress, event), next_phase_line(state.progress, event))
        self.state = DisplayState(advance(state.progress, event), debaters=state.debaters.after(event))
        for line in filter(None, lines):
            say(self.state.debaters.names.put_in(line))

    def show_text(self, piece: TextPiece) -> None:
        pass

    def say(self, text: str) -> None:
        say(text)

    def release_terminal(self) -> AbstractContextManager[None]:
        return nullcontext()


class _LiveDisplay:
    shows_text = True

    def __init__(self, seen: DisplayState, clock: Clock) -> None:
        self.state = seen
        view = LiveView(clock)
        # The state is replaced as a whole: the painter's thread never reads it half changed.
        self.painter = Painter(
            lambda width, height: view.render(
                self.state.question,
                self.state.progress,
                self.state.agents,
                width,
                height,
                self.state.debaters.names,
            )
        )

    def show(self, event: Event, *, quiet: bool = False) -> None:
        line = None if quiet else progress_line(self.state.progress, event)
        self.state = DisplayState(
            advance(self.state.progress, event),
            apply_event(self.state.agents, event),
            event.debate_created.spec.question if event.HasField("debate_created") else self.state.question,
            self.state.debaters.after(event),
        )
        if line is not None and event_kind(event) in _PERMANENT_KINDS:
            self.say(self.state.debaters.names.put_in(line))

    def show_text(self, piece: TextPiece) -> None:
        self.state = replace(self.state, agents=apply_text(self.state.agents, piece))

    def say(self, text: str) -> None:
        self.painter.say(text)

    def release_terminal(self) -> AbstractContextManager[None]:
        return self.painter.release_terminal()


@contextmanager
def _open_live_display(seen: DisplayState) -> Iterator[Display]:
    live = _LiveDisplay(seen, SystemClock())
    with live.painter:
        yield live


View = Callable[[DisplayState], AbstractContextManager[Display]]
"""Opens a display that begins with a state."""

VIEWS: Final[dict[Style, View]] = {
    "live": _open_live_display,
    "lines": lambda seen: nullcontext(_LineDisplay(seen, tells=True)),
    "none": lambda seen: nullcontext(_LineDisplay(seen, tells=False)),
}
"""By the names in `Style`."""
