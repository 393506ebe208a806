"""The recorded outcomes of debates: matches, their corrections and people's feedback, and their entries in a log."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from pydantic import TypeAdapter

from parley.ratings.calibration import JudgedAnswer


@dataclass(frozen=True, slots=True, order=True)
class PhaseResult:
    """How well an agent did in a phase, 0 to 10."""

    agent_id: str
    phase: str
    score: float


@dataclass(frozen=True, slots=True, order=True)
class Encounter:
    """How often two agents agreed in a debate, and how often they did not; `agent_id` is the smaller id."""

    agent_id: str
    other_agent_id: str
    agreements: int
    disagreements: int


@dataclass(frozen=True, slots=True)
class Match:
    """The outcome of a debate: a score for each agent, at least two, and what was learned of the agents."""

    debate_id: str
    domain: str
    scores: Mapping[str, float]
    recorded_at: datetime
    answers: tuple[JudgedAnswer, ...] = ()
    phases: tuple[PhaseResult, ...] = ()
    encounters: tuple[Encounter, ...] = ()

    def has_same_outcome(self, other: "Match") -> bool:
        """Return whether both have the same content, whatever the time and order in which they were recorded."""
        return _content(self) == _content(other)


@dataclass(frozen=True, slots=True)
class Correction:
    """A replacement of a recorded match; `number` counts the corrections of its debate, from 1.

    Attributes:
        match: The new outcome, in the recorded domain; None: the match no longer counts.
    """

    debate_id: str
    number: int
    match: Match | None
    reason: str
    recorded_at: datetime

    def has_same_content(self, other: "Correction") -> bool:
        """Return whether both say the same, whenever they were recorded."""
        if (self.debate_id, self.number, self.reason) != (other.debate_id, other.number, other.reason):
            return False
        if self.match is None or other.match is None:
            return self.match is other.match
        return self.match.has_same_outcome(other.match)


@dataclass(frozen=True, slots=True)
class Feedback:
    """A person's feedback on a debate: 1 or -1. `number` counts the feedback on the debate, from 1."""

    debate_id: str
    number: int
    value: int
    domain: str
    agent_ids: tuple[str, ...]
    recorded_at: datetime

    def has_same_content(self, other: "Feedback") -> bool:
        """Return whether both say the same, whenever they were recorded."""
        return replace(self, recorded_at=other.recorded_at) == other


def _content(match: Match) -> tuple[object, ...]:
    answers = sorted((each.agent_id, each.right, repr(each.confidence)) for each in match.answers)
    more = answers, sorted(match.phases), sorted(match.encounters)
    return match.debate_id, match.domain, dict(match.scores), more


MATCHES: Final = TypeAdapter(Match)
CORRECTIONS: Final = TypeAdapter(Correction)
FEEDBACK: Final = TypeAdapter(Feedback)
"""How the entries of the logs are written and read: as JSON."""
