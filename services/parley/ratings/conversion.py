"""Conversion between protobuf messages and the ratings' own classes."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from parley.ratings.calibration import JudgedAnswer
from parley.ratings.match import Encounter, Match, PhaseResult
from parley.ratings.table import PastMatch, Rating
from parley.v1 import ratings_pb2 as pb

GENERAL: Final = "general"
"""The domain if a request names none."""


class _Outcome(Protocol):
    """The fields that a match and its correction share."""

    debate_id: str

    @property
    def results(self) -> Iterable[pb.MatchResult]: ...
    @property
    def answers(self) -> Iterable[pb.JudgedAnswer]: ...
    @property
    def phases(self) -> Iterable[pb.PhaseResult]: ...
    @property
    def encounters(self) -> Iterable[pb.Encounter]: ...


def to_match(request: _Outcome, domain: str, recorded_at: datetime) -> Match:
    """Return the match of a checked request."""
    return Match(
        debate_id=request.debate_id,
        domain=domain or GENERAL,
        scores={each.agent_id: each.score for each in request.results},
        recorded_at=recorded_at,
        answers=tuple(
            JudgedAnswer(each.agent_id, each.right, each.confidence if each.HasField("confidence") else None)
            for each in request.answers
        ),
        phases=tuple(PhaseResult(each.agent_id, each.phase, each.score) for each in request.phases),
        encounters=tuple(map(_encounter, request.encounters)),
    )


def rating_to_proto(rating: Rating) -> pb.Rating:
    """Return a rating together with its record."""
    record = rating.record
    return pb.Rating(
        agent_id=rating.agent_id,
        domain=rating.domain,
        elo=rating.elo,
        matches=rating.matches,
        wins=rating.wins,
        draws=rating.draws,
        losses=rating.losses,
        approvals=rating.approvals,
        disapprovals=rating.disapprovals,
        last_match_at=None if rating.last_match_at is None else _timestamp(rating.last_match_at),
        judged_answers=record.answers,
        right_answers=record.right,
        brier_score=record.brier,
        expected_calibration_error=record.expected_calibration_error,
        calibration=record.calibration,
    )


def past_match_to_proto(past: PastMatch) -> pb.MatchRecord:
    """Return a match with its correction applied."""
    match, correction = past.match, past.correction
    scores = {} if match is None else match.scores
    return pb.MatchRecord(
        debate_id=past.recorded.debate_id,
        domain=past.recorded.domain,
        recorded_at=_timestamp(past.recorded.recorded_at),
        results=[pb.MatchResult(agent_id=agent, score=scores[agent]) for agent in sorted(scores)],
        changes=past.changes,
        correction=0 if correction is None else correction.number,
        correction_reason="" if correction is None else correction.reason,
        void=match is None,
    )


def _encounter(given: pb.Encounter) -> Encounter:
    one, other = sorted((given.agent_id, given.other_agent_id))
    return Encounter(one, other, given.agreements, given.disagreements)


def _timestamp(moment: datetime) -> Timestamp:
    found = Timestamp()
    found.FromDatetime(moment)
    return found
