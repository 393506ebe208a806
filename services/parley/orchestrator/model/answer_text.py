"""The answer of a debate as one text."""

from parley.v1.debate_pb2 import Outcome


def answer_text(outcome: Outcome) -> str:
    """Return the answer with what its writer recommends."""
    details = outcome.details
    lines = "\n".join(f"- {each}" for each in details.recommendations)
    parts = (outcome.description, details.implementation, lines)
    return "\n\n".join(each for each in parts if each.strip())
