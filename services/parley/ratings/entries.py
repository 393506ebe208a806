"""What is recorded of debates, as entries of a log.

A replica of an earlier version reads the matches and feedback, and passes over the fields that it does not know.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from parley.ratings.calibration import JudgedAnswer
from parley.ratings.match import Correction, Encounter, Feedback, Match, PhaseResult

__all__ = [
    "read_correction",
    "read_feedback",
    "read_match",
    "written_correction",
    "written_feedback",
    "written_match",
]


def written_match(match: Match) -> bytes:
    """Return the entry of a match."""
    return _written(_fields_of(match))


def read_match(entry: bytes) -> Match:
    """Return the match of an entry."""
    return _match(json.loads(entry))


def written_correction(correction: Correction) -> bytes:
    """Return the entry of a correction."""
    return _written(
        {
            "debate_id": correction.debate_id,
            "match": None if correction.match is None else _fields_of(correction.match),
            "number": correction.number,
            "reason": correction.reason,
            "recorded_at": correction.recorded_at.isoformat(),
            "version": 1,
        }
    )


def read_correction(entry: bytes) -> Correction:
    """Return the correction of an entry."""
    stored = json.loads(entry)
    return Correction(
        debate_id=stored["debate_id"],
        number=stored["number"],
        match=None if stored["match"] is None else _match(stored["match"]),
        reason=stored["reason"],
        recorded_at=datetime.fromisoformat(stored["recorded_at"]),
    )


def written_feedback(feedback: Feedback) -> bytes:
    """Return the entry of a word on a debate."""
    return _written(
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


def read_feedback(entry: bytes) -> Feedback:
    """Return the word of an entry."""
    stored = json.loads(entry)
    return Feedback(
        debate_id=stored["debate_id"],
        number=stored["number"],
        value=stored["value"],
        domain=stored["domain"],
        agent_ids=tuple(stored["agent_ids"]),
        recorded_at=datetime.fromisoformat(stored["recorded_at"]),
    )


def _fields_of(match: Match) -> dict[str, Any]:
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


def _match(stored: Mapping[str, Any]) -> Match:
    return Match(
        debate_id=stored["debate_id"],
        domain=stored["domain"],
        scores=stored["scores"],
        recorded_at=datetime.fromisoformat(stored["recorded_at"]),
        answers=tuple(JudgedAnswer(*each) for each in stored.get("answers", ())),
        phases=tuple(PhaseResult(*each) for each in stored.get("phases", ())),
        encounters=tuple(Encounter(*each) for each in stored.get("encounters", ())),
    )


def _written(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
