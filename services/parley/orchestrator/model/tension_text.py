"""Tensions of a moderated debate as people read them."""

from parley.v1.moderated_pb2 import Tension


def describe_tension(tension: Tension) -> str:
    """Return a tension with what became of it (CommonMark)."""
    if tension.open:
        return f"**Open:** {tension.text}"
    return f"**Settled:** {tension.text}{' ' if tension.settled else ''}{tension.settled}"
