"""Agents' profiles: strengths by domain and phase, and relationships between agents."""

from collections.abc import Iterable
from itertools import combinations

from parley.ratings.match import Match
from parley.v1.ratings_pb2 import Relationship, Strength


class AgentProfiles:
    """The agents' strengths and relationships after some matches."""

    def __init__(self) -> None:
        self._strengths: dict[str, dict[tuple[str, str], Strength]] = {}
        self._relationships: dict[str, dict[str, Relationship]] = {}

    @classmethod
    def restore(
        cls, strengths: Iterable[tuple[str, Strength]], relationships: Iterable[Relationship]
    ) -> "AgentProfiles":
        """Return the profiles that `all_strengths` and `all_relationships` returned."""
        profiles = cls()
        for agent_id, strength in strengths:
            profiles._strengths.setdefault(agent_id, {})[strength.domain, strength.phase] = strength
        for each in relationships:
            profiles._relationships.setdefault(each.agent_id, {})[each.other_agent_id] = each
        return profiles

    def all_strengths(self) -> list[tuple[str, Strength]]:
        """Return the strengths of all agents, each with its agent's id."""
        return [(agent, each) for agent, known in self._strengths.items() for each in known.values()]

    def all_relationships(self) -> list[Relationship]:
        """Return the relationships of all agents."""
        return [each for known in self._relationships.values() for each in known.values()]

    def count(self, match: Match) -> None:
        """Count a match."""
        for each in match.phases:
            strengths = self._strengths.setdefault(each.agent_id, {})
            for domain in ("", match.domain):
                found = strengths.setdefault((domain, each.phase), Strength(domain=domain, phase=each.phase))
                found.debates += 1
                found.mean_score += (each.score - found.mean_score) / found.debates
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
        known = self._relationships.setdefault(one, {})
        return known.setdefault(other, Relationship(agent_id=one, other_agent_id=other))

    def _count_meeting(self, one: str, other: str, own: float, others: float) -> None:
        found = self._relationship(one, other)
        found.debates += 1
        found.wins += own > others
        found.draws += own == others
        found.losses += own < others

    def _count_agreement(self, one: str, other: str, agreements: int, disagreements: int) -> None:
        found = self._relationship(one, other)
        found.agreements += agreements
        found.disagreements += disagreements
