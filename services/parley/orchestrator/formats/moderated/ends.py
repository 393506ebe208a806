"""How the moderator may end the rounds, and how sure the decision may be after each end."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONTINUING,
    CONVERGENCE_VERDICT_DIVERGING,
    CONVERGENCE_VERDICT_REFINING,
    CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    ConvergenceVerdict,
)
from parley.v1.debate_pb2 import (
    STOP_REASON_CLEAR_WINNER,
    STOP_REASON_CONVERGED,
    STOP_REASON_PERSON,
    STOP_REASON_STAGNATION,
    StopReason,
)
from parley.v1.moderated_pb2 import (
    CONFIDENCE_HIGH,
    CONFIDENCE_LOW,
    CONFIDENCE_MEDIUM,
    CONFIDENCE_UNSPECIFIED,
    Confidence,
)


class RoundsEnd(Struct, frozen=True):
    """One of them.

    Attributes:
        name: The moderator's word for it.
        condition: When it is to say so, in its prompt.
        description: What came to be, for people.
        max_confidence: How sure the decision may be at most.
    """

    name: str
    reason: "StopReason.ValueType"
    condition: str
    description: str
    max_confidence: "Confidence.ValueType"


AGREEMENT: Final = RoundsEnd(
    "agreement",
    STOP_REASON_CONVERGED,
    "their recommendations have come to be the same in what would be done",
    "the perspectives agree",
    CONFIDENCE_HIGH,
)
CLEAR_WINNER: Final = RoundsEnd(
    "clear_winner",
    STOP_REASON_CLEAR_WINNER,
    "one stands and the others have conceded its key points",
    "one perspective has won",
    CONFIDENCE_HIGH,
)
STAGNATION: Final = RoundsEnd(
    "stagnation",
    STOP_REASON_STAGNATION,
    "the same is said again and another round would bring nothing new",
    "nothing new is said any more",
    CONFIDENCE_MEDIUM,
)
ENDS: Final = {each.name: each for each in (AGREEMENT, CLEAR_WINNER, STAGNATION)}


CONFIDENCE_NAMES: Final[Mapping[int, str]] = {
    CONFIDENCE_UNSPECIFIED: "not said",
    CONFIDENCE_LOW: "low",
    CONFIDENCE_MEDIUM: "medium",
    CONFIDENCE_HIGH: "high",
}
_MOST_BY_REASON: Final[Mapping[int, "Confidence.ValueType"]] = {
    **{each.reason: each.max_confidence for each in ENDS.values()},
    STOP_REASON_PERSON: CONFIDENCE_MEDIUM,
}
"""By why the rounds ended; if all were run without one of these, or a limit ended them: low."""
_CONTRADICTING: Final = frozenset(
    {
        CONVERGENCE_VERDICT_CONTINUING,
        CONVERGENCE_VERDICT_DIVERGING,
        CONVERGENCE_VERDICT_REFINING,
        CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    }
)


def max_confidence(
    reason: "StopReason.ValueType", measured: "ConvergenceVerdict.ValueType | None"
) -> "Confidence.ValueType":
    """Return the most that may be said: agreement that was measured to be none makes nothing sure."""
    most = _MOST_BY_REASON.get(reason, CONFIDENCE_LOW)
    if reason == STOP_REASON_CONVERGED and measured in _CONTRADICTING:
        return CONFIDENCE_MEDIUM
    return most


def cap_confidence(said: "Confidence.ValueType", most: "Confidence.ValueType") -> "Confidence.ValueType":
    """Return what was said if that is no more than allowed, else what is allowed; nothing said is the least."""
    if said == CONFIDENCE_UNSPECIFIED:
        return CONFIDENCE_LOW
    return max(said, most)  # the enum goes down from high to low
