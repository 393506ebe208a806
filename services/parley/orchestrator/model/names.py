"""The names of a debate's agents, by which people read of them."""

from parley.orchestrator.model.spec import participants_of
from parley.runtime.agent_names import Names, name_numbered
from parley.v1.debate_pb2 import Debate


def names_of(debate: Debate) -> Names:
    """Return the names of a debate's agents."""
    return Names(participants_of(debate), debate.spec.judge.agent, name_numbered(debate.spec))
