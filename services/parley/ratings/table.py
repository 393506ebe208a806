"""The ratings of a tenant's agents: a fold of its matches."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from parley.ratings.elo import START, changes

__all__ = ["OVERALL", "Change", "Match", "Rating", "Table"]

OVERALL: Final = ""
"""The domain under which all matches count."""


@dataclass(frozen=True, slots=True)
class Match:
    """The outcome of a debate: a score for each agent, at least two."""

    debate_id: str
    domain: str
    scores: Mapping[str, float]
    recorded_at: datetime

    def same_outcome(self, other: "Match") -> bool:
        """Whether both say the same, whenever they were recorded."""
        return (self.debate_id, self.domain, dict(self.scores)) == (
            other.debate_id,
            other.domain,
            dict(other.scores),
        )


@dataclass(frozen=True, slots=True)
class Rating:
    """How an agent has done, overall or in a domain."""

    agent_id: str
    domain: str
    elo: float = START
    matches: int = 0
    wins: int = 0
    draws: int = 0
    losses: int = 0
    last_match_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What a match did to an agent's overall rating."""

    agent_id: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class _Counted:
    match: Match
    changes: tuple[Change, ...]


class Table:
    """Ratings by domain and agent after some matches."""

    def __init__(self) -> None:
        self._ratings: dict[str, dict[str, Rating]] = {}
        self._counted: dict[str, _Counted] = {}

    def count(self, match: Match) -> tuple[Change, ...]:
        """Counts a match, overall and in its domain; a debate that was counted before counts no more."""
        if match.debate_id in self._counted:
            return self._counted[match.debate_id].changes
        before = {agent_id: self.rating(agent_id).elo for agent_id in match.scores}
        for domain in {OVERALL, match.domain}:
            self._count_in(domain, match)
        moved = tuple(
            Change(agent_id, before[agent_id], self.rating(agent_id).elo) for agent_id in sorted(match.scores)
        )
        self._counted[match.debate_id] = _Counted(match, moved)
        return moved

    def counted(self, debate_id: str) -> tuple[Match, tuple[Change, ...]] | None:
        """The match of a debate and what it changed, or None where it has not been counted."""
        found = self._counted.get(debate_id)
        return None if found is None else (found.match, found.changes)

    def rating(self, agent_id: str, domain: str = OVERALL) -> Rating:
        """The rating of an agent; one without matches has that of the start."""
        return self._ratings.get(domain, {}).get(agent_id) or Rating(agent_id, domain)

    def ratings(self, domain: str = OVERALL) -> list[Rating]:
        """All ratings of a domain, best first, those of one rating by agent id."""
        return sorted(self._ratings.get(domain, {}).values(), key=lambda each: (-each.elo, each.agent_id))

    def _count_in(self, domain: str, match: Match) -> None:
        table = self._ratings.setdefault(domain, {})
        moved = changes({agent_id: each.elo for agent_id, each in table.items()}, match.scores)
        for agent_id, gain in moved.items():
            rating = table.get(agent_id) or Rating(agent_id, domain)
            score = match.scores[agent_id]
            others = [value for other, value in match.scores.items() if other != agent_id]
            table[agent_id] = replace(
                rating,
                elo=rating.elo + gain,
                matches=rating.matches + 1,
                wins=rating.wins + sum(score > other for other in others),
                draws=rating.draws + sum(score == other for other in others),
                losses=rating.losses + sum(score < other for other in others),
                last_match_at=match.recorded_at,
            )
