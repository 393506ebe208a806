"""The agents of a debate, by the names that a person gives them."""

import re
from collections.abc import Sequence
from typing import Final

from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.client import DebateSpec, ParleyError
from parley.config.file import Agent, ConfigFile
from parley.config.messages import agent_message
from parley.config.roles import canonical_role
from parley.runtime.validation import AGENT_ID
from parley.v1.debate_pb2 import Participant

JUDGE: Final = "judge"
"""The role, and the id, of the agent that writes the answer; it cannot debate."""

_UNKNOWN_AGENT: Final = re.compile(r"spec\.agents\[(\d+)\]\.agent_id")


def select_agents(found: ConfigFile | None, names: str | None) -> tuple[Agent | str, ...] | None:
    """Return the agents that `names` asks for, else the file's, else None: whatever the system's default is.

    A name is the id of an agent of the file, or the role of some; any other name stays a name, for the system to
    know. Raise CommandError for one that is named twice, or that judges.
    """
    return _select(found, found.agents if found is not None and found.team_given else (), names)


def select_evaluators(found: ConfigFile | None, names: str | None) -> tuple[Agent | str, ...] | None:
    """Return the evaluators that `names` asks for, as `select_agents` does, of the file's evaluators or else agents."""
    if found is not None and found.evaluators:
        return _select(found, found.evaluators, names)
    return select_agents(found, names)


def _select(
    found: ConfigFile | None, team: Sequence[Agent], names: str | None
) -> tuple[Agent | str, ...] | None:
    own = found.find_own_role if found is not None else lambda _: None
    if names is None:
        return tuple(team) or None
    chosen: dict[str, Agent | str] = {}
    for name in (part.strip() for part in names.split(",")):
        own_role = own(name)
        role = own_role.name if own_role is not None else canonical_role(name)
        if not AGENT_ID.fullmatch(role):
            problem = f"{name!r} is neither an id nor a role" if name else "has an empty name"
            raise CommandError(f"--agents {names}: {problem}", INVALID_ARGUMENTS)
        called = [agent for agent in team if agent.id == name] or [
            agent for agent in team if agent.role == role
        ]
        if not called and own_role is None and role == JUDGE:
            raise CommandError(f"--agents {names}: the judge cannot debate; leave it out", INVALID_ARGUMENTS)
        found_here: dict[str, Agent | str] = {agent.id: agent for agent in called}
        if not called:
            found_here[role] = name if own_role is None else Agent(role, role, role, own_role=own_role)
        twice = next((each for each in found_here if each in chosen), None)
        if twice is not None:
            raise CommandError(f"--agents {names}: {twice} is there twice", INVALID_ARGUMENTS)
        chosen.update(found_here)
    return tuple(chosen.values())


def participant(agent: Agent | str) -> Participant:
    """Return the agent as it travels: described, or by the name that the system may know it by."""
    return Participant(agent_id=agent) if isinstance(agent, str) else Participant(agent=agent_message(agent))


def role_participant(name: str) -> Participant:
    """Return a new agent that has this role and nothing else of its own."""
    role = canonical_role(name)
    return participant(Agent(role, role, role))


def treat_unknown_names_as_roles(error: ParleyError, spec: DebateSpec) -> bool:
    """Make roles of the names in --agents that the system knows no agent by; return whether there were any."""
    unknown = [_UNKNOWN_AGENT.fullmatch(violation.field) for violation in error.violations]
    for match in unknown:
        if match is not None:
            participant = spec.agents[int(match[1])]
            participant.CopyFrom(role_participant(participant.agent_id))
    return any(unknown)
