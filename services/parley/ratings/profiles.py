"""Agents' profiles: strengths by domain and phase, and relationships between agents."""

from dataclasses import dataclass, replace
from itertools import combinations

from parley.ratings.match import Match


@dataclass(frozen=True, slots=True)
class Strength:
    """How well an agent does in a phase of debates of a domain; an empty domain means all."""

    domain: str
    phase: str
    debates: int = 0
    total: float = 0.0

    @property
    def mean_score(self) -> float:
        """The mean of the scores, 0 to 10."""
        return self.total / self.debates


@dataclass(frozen=True, slots=True)
class Relationship:
    """How often an agent met another one, won and agreed, from the first agent's side."""

    agent_id: str
    other_agent_id: str
    debates: int = 0
    wins: int = 0
    draws: int = 0
    losses: int = 0
    agreements: int = 0
    disagreements: int = 0


class AgentProfiles:
    """The agents' strengths and relationships after some matches."""

    def __init__(self) -> None:
        self._strengths: dict[str, dict[tuple[str, str], Strength]] = {}
        self._relationships: dict[str, dict[str, Relationship]] = {}

    def count(self, match: Match) -> None:
        """Count a match."""
        for each in match.phases:
            strengths = self._strengths.setdefault(each.agent_id, {})
            for domain in ("", match.domain):
                found = strengths.get((domain, each.phase)) or Strength(domain, each.phase)
                strengths[domain, each.phase] = replace(
                    found, debates=found.debates + 1, total=found.total + each.score
                )
        for one, other in combinations(match.scores, 2):
            self._count_meeting(one, other, match.scores[one], match.scores[other])
            self._count_meeting(other, one, match.scores[other], match.scores[one])
        for encounter in match.encounters:
            self._count_agreement(
                encounter.agent_id, encounter.other_agent_id, encounter.agreements, encounter.disagreements
            )
            self._count_agreement(
                encounter.other_agent_id, encounter.agent_id, encounter.agreements, encounter.disagreements
            )

    def strengths(self, agent_id: str) -> list[Strength]:
        """Return an agent's strengths, ordered by domain, then phase."""
        return [each for _, each in sorted(self._strengths.get(agent_id, {}).items())]

    def relationships(self, agent_id: str) -> list[Relationship]:
        """Return an agent's relationships, those with the most debates first, then by the other's id."""
        found = self._relationships.get(agent_id, {}).values()
        return sorted(found, key=lambda each: (-each.debates, each.other_agent_id))

    def _relationship(self, one: str, other: str) -> Relationship:
        return self._relationships.setdefault(one, {}).get(other) or Relationship(one, other)

    def _count_meeting(self, one: str, other: str, own: float, others: float) -> None:
        found = self._relationship(one, other)
        self._relationships[one][other] = replace(
            found,
            debates=found.debates + 1,
            wins=found.wins + (own > others),
            draws=found.draws + (own == others),
            losses=found.losses + (own < others),
        )

    def _count_agreement(self, one: str, other: str, agreements: int, disagreements: int) -> None:
        found = self._relationship(one, other)
        self._relationships[one][other] = replace(
            found,
            agreements=found.agreements + agreements,
            disagreements=found.disagreements + disagreements,
        )
