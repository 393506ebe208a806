"""Duties: who takes part in what. An agent of which nothing is said takes part in everything."""

from collections.abc import Collection, Sequence

from parley.orchestrator.model.spec import AgentSpec
from parley.v1.arena_pb2 import ArenaSettings, Duty

__all__ = ["with_duty"]


def with_duty(
    settings: ArenaSettings,
    agents: Sequence[AgentSpec],
    duty: Duty.ValueType,
    muted: Collection[str] = (),
) -> tuple[AgentSpec, ...]:
    """Return the agents that have a duty and are not muted, in their order."""
    said = {each.agent_id: each.duties for each in settings.team.duties}
    return tuple(each for each in agents if each.id not in muted and duty in said.get(each.id, (duty,)))
