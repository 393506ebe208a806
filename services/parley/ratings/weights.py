"""The weight of an agent's vote: by its Elo rating and calibration, or by how often it was right."""

import math
from enum import Enum
from typing import Final

from parley.ratings.calibration import NEUTRAL_CALIBRATION, Record

LEAST_WEIGHT: Final = 0.1
DOUBT: Final = 12
"""Assumed wrong answers before each agent's first answer, with twice as many right ones."""


class WeightRule(Enum):
    """How weights are computed."""

    ELO = "elo"
    ACCURACY = "accuracy"


def elo_weight(elo: float, calibration: float = NEUTRAL_CALIBRATION) -> float:
    """Return `(elo - 1000) / 500 * (0.5 + calibration)`: 1.0 at the start, at least 0.1.

    Args:
        elo: The agent's rating.
        calibration: How well its confidence matches its record, 0 to 1.
    """
    return max((elo - 1000.0) / 500.0 * (0.5 + calibration), LEAST_WEIGHT)


def accuracy_weight(record: Record) -> float:
    """Return the shrunk log-odds of being right, in bits: 1.0 without any answer, at least 0.1.

    Votes of independent voters are weighed best by the log-odds of their competence (Nitzan and Paroush, "Optimal decision
    rules in uncertain dichotomous choice situations", International Economic Review 23, 1982). A few answers tell little of
    competence, so that a record is shrunk towards two right answers in three, which weigh log2(2) = 1: it is counted together
    with `DOUBT` wrong answers and twice as many right ones.
    """
    odds = (record.right + 2 * DOUBT) / (record.wrong + DOUBT)
    return max(math.log2(odds), LEAST_WEIGHT)


def weigh(elo: float, record: Record, rule: WeightRule) -> tuple[float, WeightRule]:
    """Return the weight of a vote and the rule that was used: Elo if the record has no answer."""
    if rule is WeightRule.ACCURACY and record.answers:
        return accuracy_weight(record), WeightRule.ACCURACY
    return elo_weight(elo, record.calibration), WeightRule.ELO
