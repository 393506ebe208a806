"""The names of a debate's agents, by which people read of them."""

from parley.orchestrator.model.spec import participants_of
from parley.runtime.agent_names import Names
from parley.v1.debate_pb2 import Debate


def names_of(debate: Debate) -> Names:
    """Return the names of a debate's agents; in a moderated debate these make points, and raise no issues."""
    numbered = "point" if debate.spec.HasField("moderated") else "issue"
    return Names(participants_of(debate), debate.spec.judge.agent, numbered)
