"""Text of a step in flight, as it comes from the gateway."""

from dataclasses import dataclass

__all__ = ["Delta"]


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of text.

    Attributes:
        key: Of the step.
        step_attempt: At the step, from 1.
        route_attempt: The gateway's within the step attempt, from 1; a new one voids the text before.
        offset: Characters of the route attempt's text before this piece.
    """

    key: str
    step_attempt: int
    route_attempt: int
    offset: int
    text: str
