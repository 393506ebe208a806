"""How far two stands are the same position, from rules first and meaning second."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from parley.convergence.reading import accord, contradiction
from parley.convergence.vectors import Vector, unit

__all__ = ["SAME_FROM", "Placed", "centred", "cosine", "likeness"]

_UNLIKE: Final = 0.42
_ALIKE: Final = 0.62
"""Centred cosines between which likeness goes from 0 to 1. Of the stands that the tests hold and no rule decides, those
of one position begin at 0.55 and those of different ones end at 0.50."""

SAME_FROM: Final = 0.5
"""Likeness from which two stands are one position."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A stand with the vector of its position, centred on the question."""

    agent_id: str
    position: str
    vector: Vector


def centred(vector: Vector, question: Vector) -> Vector:
    """The direction from the question to a text: what it says beyond the topic that all share."""
    return unit(vector - question)


def cosine(one: Vector, other: Vector) -> float:
    """The cosine of two directions, -1 to 1."""
    return float(np.dot(one, other))


def likeness(question: str, one: Placed, other: Placed) -> tuple[float, str | None]:
    """How far two stands are one position, 0 to 1, and why they contradict each other if they do (then it is 0)."""
    if one.position == other.position:
        return 1.0, None
    reason = contradiction(question, one.position, other.position)
    if reason is not None:
        return 0.0, reason
    if accord(question, one.position, other.position):
        return 1.0, None
    between = (cosine(one.vector, other.vector) - _UNLIKE) / (_ALIKE - _UNLIKE)
    return min(max(between, 0.0), 1.0), None
