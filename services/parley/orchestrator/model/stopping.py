"""Whether asking or debating further is likely to change anything, by the positions of the agents. Pure functions.

The caller names the positions: only equality of the names counts, and no text is read.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from math import exp, lgamma, log2
from typing import Final

from msgspec import Struct

FIRST_ASKED: Final = 2
"""How many agents are asked first, at the same time: one alone has no other to agree with."""
OTHER_ANSWERS: Final = 3
"""How many answers there are, as likely as each other, besides the right one."""
LIKENESS: Final = 0.35
"""How far agents err alike, 0 to 1: with 0 each ballot is evidence of its own, with 1 all together are evidence of one."""
_PRIORS: Final = ((4.0, 1.0), (1.0, 4.0))
"""The two kinds of positions that the mixture knows, equally probable at first: most come to hold it, or few do."""


class StatedPosition(Struct, frozen=True):
    """One agent's position in one round, by name, and how sure it is of it, 0 to 1; None if it gave no number."""

    position: str
    confidence: float | None = None


Round = Mapping[str, StatedPosition]
"""Each agent's position, by the agents' ids."""


def is_unanimous(positions: Collection[str]) -> bool:
    """Return whether at least two agents hold the same position, and none holds another."""
    return len(positions) > 1 and len(set(positions)) == 1


def group_agents(agents: Collection[str], apart: Collection[tuple[str, str]]) -> list[tuple[str, ...]] | None:
    """Return the agents in groups of one position, given all pairs of different ones, the smaller id first.

    Return None if the pairs contradict each other: a third agent shares the positions of two that differ.
    """
    groups: list[tuple[str, ...]] = []
    for agent in sorted(agents):
        near = [group for group in groups if all(_pair(agent, each) not in apart for each in group)]
        touched = [group for group in groups if any(_pair(agent, each) not in apart for each in group)]
        if near != touched or len(near) > 1:
            return None
        groups = [group for group in groups if group not in near]
        groups.append((*(near[0] if near else ()), agent))
    return groups


def name_positions(
    groups: Collection[Collection[str]], before: Mapping[str, str], kept: Collection[str], fresh: str
) -> dict[str, str]:
    """Return the name of each agent's position: that of the round before if one of its group kept its own then.

    A group in which no agent did has a new name, which begins with `fresh`.
    """
    named: dict[str, str] = {}
    for group in groups:
        known = sorted(before[each] for each in group if each in kept and each in before)
        name = known[0] if known else f"{fresh} {min(group)}"
        named |= dict.fromkeys(group, name)
    return named


def measure_shift(before: Round, now: Round) -> float:
    """Return how far a round has moved the agents, 0 (nothing has changed) to 1.

    Each position has a distribution of how many of the agents will come to hold it: a mixture of two Beta-Binomials, each
    with its prior updated by those who hold it and by those who hold another. The Kolmogorov-Smirnov distance of this
    distribution to that of the round before is the position's shift, and the largest one is the round's. An agent counts as
    much as it is sure if it gave a number in both rounds, and in full otherwise. Only agents of both rounds count.

    After Hu et al., Multi-Agent Debate for LLM Judges with Adaptive Stability Detection (2025), arXiv:2510.12697. There the
    mixture is fitted to many questions at once; here is only one, so that its priors are fixed.
    """
    agents = sorted(before.keys() & now.keys())
    weights = {each: _weights(before[each], now[each]) for each in agents}
    earlier = _Ballots([(before[each].position, weights[each][0]) for each in agents])
    later = _Ballots([(now[each].position, weights[each][1]) for each in agents])
    positions = {stated[each].position for stated in (before, now) for each in agents}
    return max(
        (_distance(earlier.distribution(each), later.distribution(each)) for each in positions), default=0.0
    )


def posterior(positions: Mapping[str, str], weights: Mapping[str, float]) -> Mapping[str, float]:
    """Return how probable each position is, 0 to 1, given who holds it; all together are below 1, since none may be right.

    A weight is the binary logarithm of an agent's odds of being right, positive. A ballot's evidence is its weight and
    `log2(OTHER_ANSWERS)`, since those who err may each choose another answer: the weighting of Nitzan and Paroush, Optimal
    decision rules in uncertain dichotomous choice situations (1982), for several answers. The probability of a position is
    proportional to 2 to the evidence of its holders, that of none of them to `OTHER_ANSWERS`, so that one agent alone is as
    probably right as its weight says. Agents err alike: all evidence is divided by `1 + (ballots - 1) * LIKENESS`, the design
    effect of Kish, Survey Sampling (1965), with as many ballots as weigh together what all do if each weighs what the heaviest does.
    """
    evidence: dict[str, float] = {}
    for agent, position in sorted(positions.items()):
        evidence[position] = evidence.get(position, 0.0) + weights[agent] + log2(OTHER_ANSWERS)
    heaviest = max((weights[agent] for agent in positions), default=0.0) + log2(OTHER_ANSWERS)
    effect = 1 + (sum(evidence.values()) / heaviest - 1) * LIKENESS
    total = OTHER_ANSWERS + sum(2.0 ** (each / effect) for each in evidence.values())
    return {position: 2.0 ** (each / effect) / total for position, each in evidence.items()}


def asking_order(weights: Mapping[str, float], order: Sequence[str]) -> list[list[str]]:
    """Return who is asked together, one group after the other: the best first, of equals by their place in `order`."""
    best = sorted(order, key=lambda agent: (-weights[agent], order.index(agent)))
    return [best[:FIRST_ASKED], *([each] for each in best[FIRST_ASKED:])]


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _weights(before: StatedPosition, now: StatedPosition) -> tuple[float, float]:
    if before.confidence is None or now.confidence is None:
        return 1.0, 1.0
    return before.confidence, now.confidence


class _Ballots:
    """The ballots of one round: who holds a position, and how much that counts."""

    def __init__(self, cast: Sequence[tuple[str, float]]) -> None:
        self._cast = cast
        self._all = sum(weight for _, weight in cast)

    def distribution(self, position: str) -> list[float]:
        """Return how probable it is that 0, 1, … or all agents come to hold a position."""
        holding = sum(weight for each, weight in self._cast if each == position)
        return _mixture(len(self._cast), holding, max(0.0, self._all - holding))


def _mixture(agents: int, holding: float, others: float) -> list[float]:
    kinds = [(alpha + holding, beta + others) for alpha, beta in _PRIORS]
    likely = [exp(_log_beta(*kind) - _log_beta(*prior)) for kind, prior in zip(kinds, _PRIORS, strict=True)]
    drawn = [_beta_binomial(agents, *kind) for kind in kinds]
    return [
        sum(like * each[count] for like, each in zip(likely, drawn, strict=True)) / sum(likely)
        for count in range(agents + 1)
    ]


@lru_cache(maxsize=4096)
def _beta_binomial(agents: int, alpha: float, beta: float) -> tuple[float, ...]:
    return tuple(
        exp(
            lgamma(agents + 1)
            - lgamma(count + 1)
            - lgamma(agents - count + 1)
            + _log_beta(count + alpha, agents - count + beta)
            - _log_beta(alpha, beta)
        )
        for count in range(agents + 1)
    )


def _log_beta(alpha: float, beta: float) -> float:
    return lgamma(alpha) + lgamma(beta) - lgamma(alpha + beta)


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the Kolmogorov-Smirnov distance of two distributions over the same numbers."""
    gap, largest = 0.0, 0.0
    for left, right in zip(one, other, strict=True):
        gap += left - right
        largest = max(largest, abs(gap))
    return largest
