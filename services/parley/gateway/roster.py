"""The agents this gateway knows: from the agents file, or one for each role."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from parley.config import Agent as FileAgent
from parley.config import ConfigFile
from parley.config.messages import agent_message
from parley.v1 import agent_pb2

__all__ = ["Roster", "roster"]

_ROLES = ("architect", "performance", "security", "testing", "simplicity", "data-modeling", "generalist")


@dataclass(frozen=True, slots=True)
class Roster:
    """Agents by id, and which of them debate and judge where a debate names none."""

    agents: Mapping[str, agent_pb2.Agent]
    default_team: tuple[str, ...]
    default_judge: str


def roster(config: ConfigFile) -> Roster:
    """Return the file's agents and judge; where the file (or there is none) names no team, an agent for every role."""
    team = tuple(agent.id for agent in config.agents)
    agents: dict[str, agent_pb2.Agent] = {}
    if not config.team_given:
        agents.update((role, agent_pb2.Agent(id=role, name=role, role=role)) for role in _ROLES)
        agents.update(_by_id(FileAgent(own.name, own.name, own.name, own_role=own) for own in config.roles))
    agents.update(_by_id((*config.agents, config.judge)))
    return Roster(dict(sorted(agents.items())), team, config.judge.id)


def _by_id(agents: Iterable[FileAgent]) -> Iterable[tuple[str, agent_pb2.Agent]]:
    for agent in agents:
        yield agent.id, agent_message(agent)
