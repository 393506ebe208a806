"""How sure a moderator may be of its recommendation, by how the rounds ended."""

from collections.abc import Mapping
from typing import Final

from parley.orchestrator.formats.moderated.ends import ENDS
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONTINUING,
    CONVERGENCE_VERDICT_DIVERGING,
    CONVERGENCE_VERDICT_REFINING,
    CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    ConvergenceVerdict,
)
from parley.v1.debate_pb2 import (
    STOP_REASON_CONVERGED,
    STOP_REASON_PERSON,
    StopReason,
)
from parley.v1.moderated_pb2 import (
    CONFIDENCE_HIGH,
    CONFIDENCE_LOW,
    CONFIDENCE_MEDIUM,
    CONFIDENCE_UNSPECIFIED,
    Confidence,
)

__all__ = ["CONFIDENCE_WORDS", "capped", "most_confidence"]

CONFIDENCE_WORDS: Final[Mapping[int, str]] = {
    CONFIDENCE_UNSPECIFIED: "not said",
    CONFIDENCE_LOW: "low",
    CONFIDENCE_MEDIUM: "medium",
    CONFIDENCE_HIGH: "high",
}
_MOST: Final[Mapping[int, "Confidence.ValueType"]] = {
    **{each.reason: each.most for each in ENDS.values()},
    STOP_REASON_PERSON: CONFIDENCE_MEDIUM,
}
"""By why the rounds ended; where all were held without one of these, or a limit ended them: low."""
_CONTRADICTING: Final = frozenset(
    {
        CONVERGENCE_VERDICT_CONTINUING,
        CONVERGENCE_VERDICT_DIVERGING,
        CONVERGENCE_VERDICT_REFINING,
        CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    }
)


def most_confidence(
    reason: "StopReason.ValueType", measured: "ConvergenceVerdict.ValueType | None"
) -> "Confidence.ValueType":
    """Return the most that may be said: agreement that was measured to be none makes nothing sure."""
    most = _MOST.get(reason, CONFIDENCE_LOW)
    if reason == STOP_REASON_CONVERGED and measured in _CONTRADICTING:
        return CONFIDENCE_MEDIUM
    return most


def capped(said: "Confidence.ValueType", most: "Confidence.ValueType") -> "Confidence.ValueType":
    """Return what was said where that is no more than allowed, else what is allowed; nothing said is the least."""
    if said == CONFIDENCE_UNSPECIFIED:
        return CONFIDENCE_LOW
    return max(said, most)  # the enum goes down from high to low
