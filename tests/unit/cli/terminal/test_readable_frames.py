"""The frames of whole debates, as answers come: while an agent writes, a person can read something of it, and never JSON."""

import io
import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from rich.console import Console

from parley.cli.terminal.display import DisplayState, _LiveDisplay
from parley.client import TextPiece, event_payload
from parley.v1.event_pb2 import StepFailed, StepStarted, StepSucceeded
from tests.support.kept_logs import KEPT, read_log
from tests.support.manual_clock import ManualClock

CHARACTERS = 3000
"""Of an answer."""
PIECE = 400
"""Characters of it from one frame to the next."""
LETTERS = re.compile(r"\b[Aa]gents? [A-D]\b|\b[A-D]\.\d")
"""By which agents know each other, and people do not."""
JSON_SIGNS = re.compile(r'[{}"\\]|\[\[|": ')


class Playback:
    """A recorded debate. Each of its steps gets a long text of its own words, which comes piece by piece."""

    def __init__(self, name: str, width: int, height: int) -> None:
        self._log = read_log(KEPT[name])
        self._replies = {
            each.message.key: each.payload for each in self._log if isinstance(each.payload, StepSucceeded)
        }
        self._size = (width, height)
        self._clock = ManualClock()
        self._display = _LiveDisplay(DisplayState(), self._clock)
        self._texts: dict[str, tuple[int, str]] = {}
        self._sent: dict[str, int] = {}

    def frames(self) -> Iterator[tuple[str, bool]]:
        """Yield each frame in which a busy agent has written something, and whether words of such an agent stand in it."""
        for each in self._log:
            key, payload = each.message.key, event_payload(each.message)
            if isinstance(payload, StepStarted) and payload.work.agent_id:
                self._begin(key)
            while isinstance(payload, StepSucceeded | StepFailed) and key in self._sent:
                yield self._next_frame()
                if self._sent[key] == len(self._texts[key][1]):
                    del self._sent[key]
            self._display.show(each.message)

    def _begin(self, key: str) -> None:
        number = len(self._texts)
        said = self._replies[key].reply.text if key in self._replies else ""
        self._texts[key] = (number, lengthen(said, number))
        self._sent[key] = 0

    def _next_frame(self) -> tuple[str, bool]:
        for key, at in self._sent.items():
            piece = self._texts[key][1][at : at + PIECE]
            self._display.show_text(TextPiece(key, 1, 1, at, piece))
            self._sent[key] = at + len(piece)
        self._clock.advance(1 / 8)
        picture = draw(self._display, *self._size)
        written = "|".join(str(self._texts[key][0]) for key in self._sent)
        return picture, bool(re.search(rf"\bw({written})x\d", picture))


def draw(display: _LiveDisplay, width: int, height: int) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as caught:
        console.print(display.painter.frame(width, height))
    return caught.get()


def lengthen(said: str, number: int) -> str:
    """Return an answer of this form with words that only this step has."""
    words = (f"w{number}x{each}" for each in count())
    try:
        value = json.loads(said)
    except ValueError:
        return make_text(words, CHARACTERS)
    return json.dumps(replace_texts(value, words, CHARACTERS // max(count_texts(value), 1)))


def make_text(words: Iterator[str], characters: int) -> str:
    text = ""
    while len(text) < characters:
        text += " ".join(next(words) for _ in range(20)) + ".\n\n"
    return text.strip()


def replace_texts(value: Any, words: Iterator[str], characters: int) -> Any:
    match value:
        case str():
            return make_text(words, characters)
        case list():
            return [replace_texts(each, words, characters) for each in value]
        case dict():
            return {name: replace_texts(each, words, characters) for name, each in value.items()}
        case _:
            return value


def count_texts(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return int(isinstance(value, str)) + sum(map(count_texts, parts))


@pytest.mark.parametrize(
    ("name", "width", "height"),
    [
        ("panel@1-quality", 60, 20),
        ("arena@1-collaborative", 60, 20),
        ("moderated@1-unsteered", 60, 20),
        ("panel@1-quality", 100, 30),
        ("moderated@1-unsteered", 200, 50),
    ],
)
def test_while_an_agent_writes_its_words_can_be_read(name: str, width: int, height: int) -> None:
    frames = [*Playback(name, width, height).frames()]
    unreadable = [picture for picture, is_readable in frames if not is_readable]
    assert len(frames) > 50
    assert len(unreadable) <= len(frames) * 0.05, (
        f"{len(unreadable)} of {len(frames)}, such as\n{unreadable[0]}"
    )
    assert not [picture for picture, _ in frames if JSON_SIGNS.search(picture)]
    assert not [picture for picture, _ in frames if LETTERS.search(picture)]
