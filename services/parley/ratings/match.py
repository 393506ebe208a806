"""The recorded outcomes of debates: matches, their corrections and people's feedback, and their entries in a log."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

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


def encode_match(match: Match) -> bytes:
    """Return the entry of a match."""
    return _encode(_match_fields(match))


def decode_match(entry: bytes) -> Match:
    """Return the match of an entry."""
    return _match_from(json.loads(entry))


def encode_correction(correction: Correction) -> bytes:
    """Return the entry of a correction."""
    return _encode(
        {
            "debate_id": correction.debate_id,
            "match": None if correction.match is None else _match_fields(correction.match),
            "number": correction.number,
            "reason": correction.reason,
            "recorded_at": correction.recorded_at.isoformat(),
            "version": 1,
        }
    )


def decode_correction(entry: bytes) -> Correction:
    """Return the correction of an entry."""
    stored = json.loads(entry)
    return Correction(
        debate_id=stored["debate_id"],
        number=stored["number"],
        match=None if stored["match"] is None else _match_from(stored["match"]),
        reason=stored["reason"],
        recorded_at=datetime.fromisoformat(stored["recorded_at"]),
    )


def encode_feedback(feedback: Feedback) -> bytes:
    """Return the entry of feedback on a debate."""
    return _encode(
        {
            "agent_ids": list(feedback.agent_ids),
            "debate_id": feedback.debate_id,
            "domain": feedback.domain,
            "number": feedback.number,
            "recorded_at": feedback.recorded_at.isoformat(),
            "value": feedback.value,
            "version": 1,
        }
    )


def decode_feedback(entry: bytes) -> Feedback:
    """Return the feedback of an entry."""
    stored = json.loads(entry)
    return Feedback(
        debate_id=stored["debate_id"],
        number=stored["number"],
        value=stored["value"],
        domain=stored["domain"],
        agent_ids=tuple(stored["agent_ids"]),
        recorded_at=datetime.fromisoformat(stored["recorded_at"]),
    )


def _match_fields(match: Match) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "debate_id": match.debate_id,
        "domain": match.domain,
        "recorded_at": match.recorded_at.isoformat(),
        "scores": dict(match.scores),
        "version": 1,
    }
    more = {
        "answers": [[each.agent_id, each.right, each.confidence] for each in match.answers],
        "encounters": [
            [each.agent_id, each.other_agent_id, each.agreements, each.disagreements]
            for each in match.encounters
        ],
        "phases": [[each.agent_id, each.phase, each.score] for each in match.phases],
    }
    return fields | {name: values for name, values in more.items() if values}


def _match_from(stored: Mapping[str, Any]) -> Match:
    return Match(
        debate_id=stored["debate_id"],
        domain=stored["domain"],
        scores=stored["scores"],
        recorded_at=datetime.fromisoformat(stored["recorded_at"]),
        answers=tuple(JudgedAnswer(*each) for each in stored.get("answers", ())),
        phases=tuple(PhaseResult(*each) for each in stored.get("phases", ())),
        encounters=tuple(Encounter(*each) for each in stored.get("encounters", ())),
    )


def _encode(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
