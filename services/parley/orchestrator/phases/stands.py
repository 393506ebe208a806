"""Contributions as the convergence service reads them."""

from collections.abc import Sequence

from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.peers.services import truncate_text
from parley.v1.convergence_pb2 import AgentPosition

__all__ = ["stands_of"]


def stands_of(work: Sequence[Contribution]) -> list[AgentPosition]:
    """Return what each agent stands for."""
    return [
        AgentPosition(agent_id=each.agent, position=each.position, text=truncate_text(each.text))
        for each in work
    ]
