"""How the moderator may end the rounds: what it is told of each end, what people read, and how sure the decision may be."""

from dataclasses import dataclass
from typing import Final

from parley.v1.debate_pb2 import (
    STOP_REASON_CLEAR_WINNER,
    STOP_REASON_CONVERGED,
    STOP_REASON_STAGNATION,
    StopReason,
)
from parley.v1.moderated_pb2 import CONFIDENCE_HIGH, CONFIDENCE_MEDIUM, Confidence

__all__ = ["AGREEMENT", "CLEAR_WINNER", "ENDS", "STAGNATION", "End"]


@dataclass(frozen=True, slots=True)
class End:
    """One of them.

    Attributes:
        name: The moderator's word for it.
        when: When it is to say so, as it is told.
        words: What came to be, for people.
        most: How sure the decision may be at most.
    """

    name: str
    reason: "StopReason.ValueType"
    when: str
    words: str
    most: "Confidence.ValueType"


AGREEMENT: Final = End(
    "agreement",
    STOP_REASON_CONVERGED,
    "their recommendations have come to be the same in what would be done",
    "the perspectives agree",
    CONFIDENCE_HIGH,
)
CLEAR_WINNER: Final = End(
    "clear_winner",
    STOP_REASON_CLEAR_WINNER,
    "one stands and the others have conceded its key points",
    "one perspective has won",
    CONFIDENCE_HIGH,
)
STAGNATION: Final = End(
    "stagnation",
    STOP_REASON_STAGNATION,
    "the same is said again and another round would bring nothing new",
    "nothing new is said any more",
    CONFIDENCE_MEDIUM,
)
ENDS: Final = {each.name: each for each in (AGREEMENT, CLEAR_WINNER, STAGNATION)}
