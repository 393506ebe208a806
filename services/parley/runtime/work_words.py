"""Phases and steps of a debate in a few words, as all that show progress name them."""

from parley.v1.debate_pb2 import Work


def phase_text(name: str, number: int) -> str:
    """Return `round 1 proposal`; the name alone outside of rounds."""
    return f"round {number} {name}" if number else name


def work_text(work: Work) -> str:
    """Return `ada criticizes bo`."""
    return " ".join(
        part for part in (work.agent_id, work.doing or work.activity, work.target_agent_id) if part
    )
