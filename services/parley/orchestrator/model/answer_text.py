"""The answer of a debate as one text, and how sure it may be."""

from typing import Final

from parley.v1.debate_pb2 import Outcome

MAX_CONFIDENCE_WITH_UNMET_REQUIREMENT: Final = 40
"""The most confidence an answer may have while a stated hard requirement is unmet."""


def answer_text(outcome: Outcome) -> str:
    """Return the answer with what its writer recommends."""
    details = outcome.details
    lines = "\n".join(f"- {each}" for each in details.recommendations)
    parts = (outcome.description, details.implementation, lines)
    return "\n\n".join(each for each in parts if each.strip())
