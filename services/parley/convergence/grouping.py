"""Groups stands by position: average linkage, and never two that contradict each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from parley.convergence.likeness import SAME_FROM, Placed, cosine, likeness
from parley.convergence.vectors import mean_direction

__all__ = ["Contradiction", "Group", "Grouping", "group"]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two agents whose positions cannot both hold; `one` is the smaller id."""

    one: str
    other: str
    reason: str


@dataclass(frozen=True, slots=True)
class Group:
    """Agents of one position, ordered; `representative` is the one nearest to their middle."""

    agent_ids: tuple[str, ...]
    representative: str
    position: str


@dataclass(frozen=True, slots=True)
class Grouping:
    """Every agent in one group, largest first; the likeness of all pairs with ids in order; who contradicts whom."""

    groups: tuple[Group, ...]
    likenesses: dict[tuple[str, str], float]
    contradictions: tuple[Contradiction, ...]


def group(question: str, stands: Sequence[Placed]) -> Grouping:
    """Groups stands. Their order does not matter; agent ids are unique."""
    ordered = sorted(stands, key=lambda stand: stand.agent_id)
    likenesses: dict[tuple[str, str], float] = {}
    contradictions: list[Contradiction] = []
    for one, other in combinations(ordered, 2):
        value, reason = likeness(question, one, other)
        likenesses[one.agent_id, other.agent_id] = value
        if reason is not None:
            contradictions.append(Contradiction(one.agent_id, other.agent_id, reason))
    apart = frozenset((each.one, each.other) for each in contradictions)
    members = _merged([(stand.agent_id,) for stand in ordered], likenesses, apart)
    by_id = {stand.agent_id: stand for stand in ordered}
    groups = [_described([by_id[agent_id] for agent_id in each]) for each in members]
    groups.sort(key=lambda each: (-len(each.agent_ids), each.agent_ids[0]))
    return Grouping(tuple(groups), likenesses, tuple(contradictions))


def _merged(
    groups: list[tuple[str, ...]], likenesses: dict[tuple[str, str], float], apart: frozenset[tuple[str, str]]
) -> list[tuple[str, ...]]:
    """Joins the two groups that are most alike on average, until none are alike enough."""
    while True:
        best: tuple[float, tuple[str, ...], tuple[str, ...]] | None = None
        for one, other in combinations(groups, 2):
            pairs = [(min(pair), max(pair)) for pair in product(one, other)]
            if any(pair in apart for pair in pairs):
                continue
            mean = sum(likenesses[pair] for pair in pairs) / len(pairs)
            if mean >= SAME_FROM and (best is None or mean > best[0]):
                best = (mean, one, other)
        if best is None:
            return groups
        _, one, other = best
        groups = [each for each in groups if each not in (one, other)] + [tuple(sorted(one + other))]
        groups.sort()


def _described(members: Sequence[Placed]) -> Group:
    middle = mean_direction([each.vector for each in members])
    nearest = max(members, key=lambda each: round(cosine(each.vector, middle), 6))
    return Group(tuple(each.agent_id for each in members), nearest.agent_id, nearest.position)
