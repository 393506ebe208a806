"""The newest text of a debate's steps in flight, held once for all who listen at this replica."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from parley.v1.orchestrator_pb2 import StepDelta

MAX_WAITING_PIECES = 256
"""Pieces that wait for listeners. If there are more, the oldest are dropped."""
MAX_WAITING_CHARACTERS = 512 * 1024
"""Characters of these pieces. The last piece is kept in any case."""


class LiveText:
    """Pieces of text that some listeners have still to take, in order. The oldest are dropped if there are too many."""

    def __init__(self) -> None:
        """Start with none."""
        self.end = 0
        self.listeners: set[TextListener] = set()
        self._pieces: deque[StepDelta] = deque()
        self._characters = 0

    def append(self, piece: StepDelta) -> None:
        """Add a piece, and drop those that all listeners have taken."""
        self._keep_newest(self.end - min((each.place for each in self.listeners), default=self.end))
        self._pieces.append(piece)
        self._characters += len(piece.text)
        self.end += 1
        self._keep_newest(MAX_WAITING_PIECES)
        while self._characters > MAX_WAITING_CHARACTERS and len(self._pieces) > 1:
            self._drop_oldest()

    def pieces_after(self, place: int) -> tuple[StepDelta, ...]:
        """Return the pieces from a place on, joined by text."""
        first = self.end - len(self._pieces)
        return _join_by_text(islice(self._pieces, max(place - first, 0), None))

    def _keep_newest(self, count: int) -> None:
        while len(self._pieces) > count:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._characters -= len(self._pieces.popleft().text)


class TextListener:
    """The place of one listener in the text of a debate."""

    def __init__(self, text: LiveText) -> None:
        """Listen to what is added from now on."""
        self._text = text
        self.place = text.end

    @property
    def span(self) -> tuple[LiveText, int, int]:
        """The text, and the places between which there is text to take."""
        return self._text, self.place, self._text.end

    @property
    def is_behind(self) -> bool:
        """Whether there is text to take."""
        return self.place < self._text.end

    def take(self) -> tuple[StepDelta, ...]:
        """Return the text that is there. Pieces that follow on each other come as one."""
        pieces = self._text.pieces_after(self.place)
        self.skip()
        return pieces

    def skip(self) -> None:
        """Pass over the text that is there."""
        self.place = self._text.end


def _join_by_text(pieces: Iterable[StepDelta]) -> tuple[StepDelta, ...]:
    latest: dict[tuple[str, int, int], list[StepDelta]] = {}
    runs: list[list[StepDelta]] = []
    for piece in pieces:
        text = piece.key, piece.step_attempt, piece.route_attempt
        run = latest.get(text)
        if run and run[-1].offset + len(run[-1].text) == piece.offset:
            run.append(piece)
        else:
            latest[text] = [piece]
            runs.append(latest[text])
    return tuple(run[0] if len(run) == 1 else _join(run) for run in runs)


def _join(run: Sequence[StepDelta]) -> StepDelta:
    """Return pieces that follow on each other as one; they stay as they are."""
    joined = StepDelta()
    joined.CopyFrom(run[0])
    joined.text = "".join(piece.text for piece in run)
    return joined
