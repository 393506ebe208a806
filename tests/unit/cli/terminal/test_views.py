"""Ways to show a debate: each name has its view, and another one is a module and a line in two places."""

from contextlib import AbstractContextManager, nullcontext
from typing import cast

import pytest

from parley.cli.printing import STYLES, Style
from parley.cli.terminal.display import VIEWS, Display, DisplayState, open_display
from parley.cli.terminal.progress import advance
from parley.client import Event, TextPiece
from parley.v1.event_pb2 import RoundStarted
from tests.support.made_events import made_event


class Counter:
    """A view from outside: it counts."""

    shows_text = False

    def __init__(self, state: DisplayState) -> None:
        self.state = state
        self.said: list[str] = []

    def show(self, event: Event, *, quiet: bool = False) -> None:
        self.state = DisplayState(advance(self.state.progress, event), self.state.agents)
        if not quiet:
            self.say(f"event {event.sequence}, round {self.state.progress.round}")

    def show_text(self, piece: TextPiece) -> None:
        pass

    def say(self, text: str) -> None:
        self.said.append(text)

    def release_terminal(self) -> AbstractContextManager[None]:
        return nullcontext()


def test_every_name_has_its_view() -> None:
    assert set(VIEWS) == set(STYLES)


def test_a_view_from_outside_shows_a_debate(monkeypatch: pytest.MonkeyPatch) -> None:
    name, made = cast("Style", "count"), Counter(DisplayState())

    def count(_state: DisplayState) -> AbstractContextManager[Display]:
        return nullcontext(made)

    monkeypatch.setitem(VIEWS, name, count)
    with open_display(DisplayState(), name) as shown:
        shown.show(made_event(RoundStarted(number=1, total=2), "round/1/started"))
    assert made.said == ["event 1, round 1"]
