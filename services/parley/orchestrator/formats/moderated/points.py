"""Points: what a debater says, numbered, so that others can answer it by name, such as `B.2`.

The numbers of an agent go on from its argument to its rebuttal, so that a name means one point in a round.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final

from msgspec import Struct
from pydantic import AfterValidator

from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.phases.schemas import Line
from parley.v1.debate_pb2 import PointReference

_NAME: Final = re.compile(r"\b([A-Z]{1,2})\s?[.\-]?\s?(\d{1,2})\b")
_LETTER: Final = re.compile(r"\s*(?:agent\s+)?([a-z]{1,2})\b", re.IGNORECASE)
_MAX_QUOTE_CHARACTERS: Final = 300
_MAX_POSITION_CHARACTERS: Final = 500

Position = Annotated[Line, AfterValidator(lambda line: line[:_MAX_POSITION_CHARACTERS])]
"""Where a debater stands, as it is read: one line, and no more of it than is kept."""


class Point(Struct, frozen=True):
    """A point of a speech.

    Attributes:
        name: What it is called in its round.
        key: Of the step that made it.
        number: Its place there, from 1.
        answers: The name of the point that it answers; empty for none.
    """

    name: str
    key: str
    number: int
    agent: str
    text: str
    answers: str = ""

    @property
    def reference(self) -> PointReference:
        """Return the point as it is recorded if it is answered."""
        return PointReference(key=self.key, point=self.number)


class Speech(Struct, frozen=True):
    """What a debater said in one step of a round.

    Attributes:
        key: Of the step.
        contribution: What others read.
        points: In order.
        gives_up: What it said it would give up.
        agrees_with: Letters of the agents whose stand it can go along with; None if it does not say.
        concedes: Names of points that it grants.
        tokens: What it took to write.
        limit: Tokens that it might take; 0: no limit.
        truncated: Whether it was cut off at that.
    """

    key: str
    contribution: Contribution
    points: tuple[Point, ...] = ()
    gives_up: tuple[str, ...] = ()
    agrees_with: frozenset[str] | None = None
    concedes: tuple[str, ...] = ()
    tokens: int = 0
    limit: int = 0
    truncated: bool = False


def points_by_name(speeches: Iterable[Speech]) -> dict[str, Point]:
    """Return the points of speeches by their names."""
    return {point.name: point for speech in speeches for point in speech.points}


def find_point(given: str, points: Mapping[str, Point]) -> Point | None:
    """Return the point that a text names, such as `B.2` or `B2`; None if there is none of that name."""
    found = _NAME.search(given)
    return points.get(f"{found[1]}.{int(found[2])}") if found else None


def parse_letter(given: str) -> str:
    """Return the letter by which a text names an agent, such as `B`, `b` or `agent B (Security Advocate)`; empty if it names none."""
    found = _LETTER.match(given)
    return found[1].upper() if found else ""


def quote_from(point: Point, quote: str) -> str:
    """Return a quote of a point if its text holds it, else the beginning of the text: no agent is quoted with other words."""
    said = _simplify(quote)
    text = " ".join(point.text.split())
    if said and said in _simplify(text):
        text = " ".join(quote.split()).strip("\"'“”„«» ")
    return text if len(text) <= _MAX_QUOTE_CHARACTERS else f"{text[:_MAX_QUOTE_CHARACTERS]}…"


def _simplify(text: str) -> str:
    return " ".join(text.split()).strip("\"'“”„«».… ").casefold()


def number_points(
    letter: str, key: str, agent: str, first: int, texts: Sequence[str], answers: Sequence[str] = ()
) -> tuple[Point, ...]:
    """Return the points of a step, whose names begin with this number. `answers`: which point each answers, if they do."""
    return tuple(
        Point(f"{letter}.{first + place}", key, place + 1, agent, text, answered)
        for place, (text, answered) in enumerate(zip(texts, answers or [""] * len(texts), strict=True))
    )
