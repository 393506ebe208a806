"""What is recorded of debates: matches, corrections of them, and what people said."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from parley.ratings.calibration import JudgedAnswer

__all__ = ["Correction", "Encounter", "Feedback", "Match", "PhaseResult"]


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
    """The outcome of a debate: a score for each agent, at least two, and what else was learned of them."""

    debate_id: str
    domain: str
    scores: Mapping[str, float]
    recorded_at: datetime
    answers: tuple[JudgedAnswer, ...] = ()
    phases: tuple[PhaseResult, ...] = ()
    encounters: tuple[Encounter, ...] = ()

    def same_outcome(self, other: "Match") -> bool:
        """Return whether both say the same, whenever they were recorded and in whichever order."""
        return _said(self) == _said(other)


@dataclass(frozen=True, slots=True)
class Correction:
    """What counts in place of a recorded match; `number` says which correction of its debate it is, from 1.

    Attributes:
        match: The outcome in its place, of the domain that was recorded; None: the match is taken away.
    """

    debate_id: str
    number: int
    match: Match | None
    reason: str
    recorded_at: datetime

    def same_word(self, other: "Correction") -> bool:
        """Return whether both say the same, whenever they were recorded."""
        if (self.debate_id, self.number, self.reason) != (other.debate_id, other.number, other.reason):
            return False
        if self.match is None or other.match is None:
            return self.match is other.match
        return self.match.same_outcome(other.match)


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person said of a debate: 1 or -1. `number` says which word on the debate it is, from 1."""

    debate_id: str
    number: int
    value: int
    domain: str
    agent_ids: tuple[str, ...]
    recorded_at: datetime

    def same_word(self, other: "Feedback") -> bool:
        """Return whether both say the same, whenever they were recorded."""
        return replace(self, recorded_at=other.recorded_at) == other


def _said(match: Match) -> tuple[object, ...]:
    answers = sorted((each.agent_id, each.right, repr(each.confidence)) for each in match.answers)
    more = answers, sorted(match.phases), sorted(match.encounters)
    return match.debate_id, match.domain, dict(match.scores), more
