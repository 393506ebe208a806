"""Elo for a match of any number of players."""

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Final

START: Final = 1500.0
K: Final = 32.0


def expectation(rating: float, opponent: float) -> float:
    """Return the expected share of points of a player against an opponent, 0 to 1."""
    return 1.0 / (1.0 + math.pow(10.0, (opponent - rating) / 400.0))


def rating_changes(ratings: Mapping[str, float], scores: Mapping[str, float]) -> dict[str, float]:
    """Return the rating change of each player after a match; the sum is zero.

    Everyone plays everyone: the larger score wins, equal ones draw. A pair moves K divided by the number of opponents,
    so that a match of ten moves no more than a match of two. All pairs are computed from the ratings before the match.

    Args:
        ratings: The players' ratings; a missing player has the start rating.
        scores: The players' scores, at least two.
    """
    step = K / (len(scores) - 1)
    moved = dict.fromkeys(sorted(scores), 0.0)
    for one, other in combinations(moved, 2):
        won = 0.5 + 0.5 * ((scores[one] > scores[other]) - (scores[one] < scores[other]))
        gain = step * (won - expectation(ratings.get(one, START), ratings.get(other, START)))
        moved[one] += gain
        moved[other] -= gain
    return moved
