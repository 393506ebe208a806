"""What a score means, in words: the same for the final scores and for those between rounds, since ratings live on them."""

from collections.abc import Sequence
from typing import Any

SOUND = 7
"""The score from which on work is sound."""
_ANCHORS = (
    (10, "one could act on it as it stands, and it leaves no stated requirement unmet"),
    (SOUND, "sound; its gaps are small, and whoever acts on it can close them"),
    (5, "the right direction, with gaps that matter"),
    (3, "parts of it are of use, but it does not hold as a whole"),
    (0, "wrong, harmful, or no answer to the question"),
)
_FULL_MARKS = 10


def score_anchors(best: int, *, of_one: bool = False) -> str:
    """Return how to score from 0 to `best`, for the prompt of the agent that scores; `of_one`: there is the work of one agent alone."""
    anchors = "\n".join(f"- {value * best // _FULL_MARKS}: {meaning}" for value, meaning in _ANCHORS)
    scale = (
        f"What scores from 0 to {best} mean; take the numbers between them too:\n{anchors}\n"
        "Score the work and not its length or style."
    )
    if of_one:
        return scale
    return f"{scale} Score each by itself: two may have the same score. An agent's letter says nothing about its work."


def scores_schema(letters: Sequence[str], best: int) -> dict[str, Any]:
    """Return the schema of one score from 0 to `best` for each agent, by its letter."""
    return {
        "type": "object",
        "description": f"The score of each agent's work, 0 to {best}; 'A' stands for agent A, and so on.",
        "properties": {each: {"type": "integer", "minimum": 0, "maximum": best} for each in letters},
        "required": list(letters),
        "additionalProperties": False,
    }
