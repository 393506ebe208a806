"""Groups of agents by position: complete linkage, so that all pairs of a group are the same answer."""

from collections.abc import Mapping
from itertools import combinations, product

from msgspec import Struct

from parley.convergence.agreement import Relation

AgentPair = tuple[str, str]
"""The ids of two agents, the smaller one first."""


class Reading(Struct, frozen=True):
    """The relations of all pairs of a round's agents.

    Attributes:
        positions: Of each agent; empty if it states none.
        relations: Of each pair.
        probabilities: Of each pair, that both are the same answer; None if unknown.
    """

    positions: Mapping[str, str]
    relations: Mapping[AgentPair, Relation]
    probabilities: Mapping[AgentPair, float | None]

    def pairs(self, wanted: Relation) -> tuple[AgentPair, ...]:
        """Return the pairs with this relation, ordered."""
        return tuple(sorted(pair for pair, found in self.relations.items() if found is wanted))


class Group(Struct, frozen=True):
    """Agents with one position, ordered; `representative` is the agent whose position is most similar to the others'."""

    agent_ids: tuple[str, ...]
    representative: str
    position: str


class Grouping(Struct, frozen=True):
    """Every agent in one group, largest first.

    `certain`: no pair is unsure, and every pair that is the same answer is together.
    """

    groups: tuple[Group, ...]
    certain: bool

    @property
    def has_majority(self) -> bool:
        """Whether the largest group has more than half of all agents."""
        sizes = [len(each.agent_ids) for each in self.groups]
        return 2 * sizes[0] > sum(sizes)


def group(reading: Reading) -> Grouping:
    """Group the agents. All pairs of a group are the same answer."""
    members = _merge([(agent,) for agent in sorted(reading.positions)], reading)
    groups = sorted(
        (_describe(each, reading) for each in members),
        key=lambda each: (-len(each.agent_ids), each.agent_ids[0]),
    )
    together = {pair for each in groups for pair in combinations(each.agent_ids, 2)}
    certain = not reading.pairs(Relation.UNSURE) and together == set(reading.pairs(Relation.SAME))
    return Grouping(tuple(groups), certain)


def _merge(groups: list[tuple[str, ...]], reading: Reading) -> list[tuple[str, ...]]:
    """Merge the two groups whose least probable pair is most probable, until no two can be merged."""
    while True:
        best: tuple[float, tuple[str, ...], tuple[str, ...]] | None = None
        for one, other in combinations(groups, 2):
            pairs = [_sort_pair(*pair) for pair in product(one, other)]
            if any(reading.relations[pair] is not Relation.SAME for pair in pairs):
                continue
            least = min(_probability(reading, pair) for pair in pairs)
            if best is None or least > best[0]:
                best = (least, one, other)
        if best is None:
            return groups
        _, one, other = best
        groups = sorted([each for each in groups if each not in (one, other)] + [tuple(sorted(one + other))])


def _describe(members: tuple[str, ...], reading: Reading) -> Group:
    def likeness(agent: str) -> float:
        others = [_sort_pair(agent, each) for each in members if each != agent]
        return round(sum(_probability(reading, pair) for pair in others), 6)

    speaker = max(members, key=likeness)
    return Group(members, speaker, reading.positions[speaker])


def _probability(reading: Reading, pair: AgentPair) -> float:
    """Return the probability of a pair of the same answer; 1 if a caller settled it."""
    known = reading.probabilities[pair]
    return 1.0 if known is None else known


def _sort_pair(one: str, other: str) -> AgentPair:
    return (one, other) if one < other else (other, one)
