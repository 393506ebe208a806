"""A graph of claims that support and attack each other: how far each can be believed, and what the verdict depends on. Pure functions."""

import math
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

_STRENGTH: Final = 4.0
"""Log-odds that a fully believed claim adds to another one over an edge of weight 1."""
_MAX_LOG_ODDS: Final = math.log(99)
"""Of a prior: no claim is certain from the start, or nothing could be said against it."""
_MAX_STEPS: Final = 200
_DAMPING: Final = 0.5
"""Share of the old value that a step keeps: two claims that attack each other would swing for ever without it."""
_UNCHANGED: Final = 1e-9
_TIE: Final = 1e-6
"""A credence that is no farther from one half is on neither side."""


class Claim(Struct, frozen=True):
    """A claim. `prior`: how far it can be believed by itself, 0 to 1."""

    id: str
    prior: float


class Relation(Struct, frozen=True):
    """What one claim says about another one.

    Attributes:
        weight: How much it says, 0 (nothing) to 1 (it decides).
        attacks: Whether it speaks against the target; otherwise for it.
    """

    source: str
    target: str
    weight: float = 1.0
    attacks: bool = False


class ClaimGraph(Struct, frozen=True):
    """Claims with unique ids and the relations between them, of which each is between two different claims of the graph."""

    claims: tuple[Claim, ...]
    relations: tuple[Relation, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if ids repeat, a relation is between claims that are not here, or a number is out of its range."""
        ids = {each.id for each in self.claims}
        if len(ids) != len(self.claims):
            raise ValueError("two claims have the same id")
        for each in self.relations:
            if not {each.source, each.target} <= ids or each.source == each.target:
                raise ValueError(f"{each.source} and {each.target} are not two claims of this graph")
        numbers = (*(each.prior for each in self.claims), *(each.weight for each in self.relations))
        if not all(0 <= each <= 1 for each in numbers):
            raise ValueError("a prior or a weight is not between 0 and 1")


def propagate_belief(graph: ClaimGraph, fixed: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return the credence of each claim, 0 to 1: its prior, moved by the claims that support and attack it.

    Each claim c has the log-odds `logit(prior) + 4 * sum(± weight * (2 * credence - 1))` over the claims that relate to it: one that
    is believed counts for what it supports and against what it attacks, one that is disbelieved the other way round, and one
    that is open (0.5) says nothing. This is the mean-field equation of a directed Ising model (MacKay, Information Theory,
    Inference, and Learning Algorithms, 2003, chapter 33), solved by damped steps; so evidence adds in log-odds, as Good's
    weights of evidence do (Probability and the Weighing of Evidence, 1950). Circles are allowed. It ends after 200 steps at most.

    Args:
        graph: The claims.
        fixed: Credences that are given, and not computed.
    """
    fixed = fixed or {}
    priors = {each.id: _clamp_log_odds(each.prior) for each in graph.claims}
    credences = {claim: fixed.get(claim, _logistic(prior)) for claim, prior in priors.items()}
    for _ in range(_MAX_STEPS):
        sums = dict(priors)
        for each in graph.relations:
            sign = -1 if each.attacks else 1
            sums[each.target] += sign * _STRENGTH * each.weight * (2 * credences[each.source] - 1)
        aims = {claim: fixed.get(claim, _logistic(sums[claim])) for claim in sums}
        change = max((abs(aims[claim] - credences[claim]) for claim in aims), default=0.0)
        if change <= _UNCHANGED:
            break
        credences = {claim: _DAMPING * credences[claim] + (1 - _DAMPING) * aims[claim] for claim in credences}
    return credences


def find_cruxes(graph: ClaimGraph, verdict: str) -> list[str]:
    """Return the claims whose reversal turns the verdict, in the order of the graph.

    A claim is reversed by giving it the opposite credence, `1 - credence`, whatever speaks for it; all others are computed
    again. The verdict turns if its credence is then on the other side of one half. A verdict that is itself open has no crux.
    """
    credences = propagate_belief(graph)
    side = _side(credences[verdict])
    if not side:
        return []
    return [
        each.id
        for each in graph.claims
        if each.id != verdict
        and _side(propagate_belief(graph, {each.id: 1 - credences[each.id]})[verdict]) == -side
    ]


def _side(credence: float) -> int:
    return 0 if abs(credence - 0.5) <= _TIE else 1 if credence > 0.5 else -1


def _clamp_log_odds(probability: float) -> float:
    if probability in (0, 1):
        return _MAX_LOG_ODDS if probability else -_MAX_LOG_ODDS
    return min(max(math.log(probability / (1 - probability)), -_MAX_LOG_ODDS), _MAX_LOG_ODDS)


def _logistic(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))
