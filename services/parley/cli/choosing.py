"""From a configuration and the options to what is asked of the orchestrator."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from parley import config
from parley.cli.failures import INVALID_ARGUMENTS, CommandError
from parley.client import DebateSpec
from parley.config import Agent, ConfigFile, canonical_role
from parley.config.messages import agent_message, debate_message
from parley.v1.orchestrator_pb2 import Participant

__all__ = ["DEFAULT_FILES", "chosen_agents", "find_config", "of_role", "spec_of"]

DEFAULT_FILES: Final = ("parley.yaml", "debate-config.json")
_WAITING_SECONDS: Final = 5
"""Somebody sits before a command: that no provider is within reach is told soon rather than waited out."""
_JUDGE: Final = "judge"
_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


def find_config(given: Path | None) -> ConfigFile | None:
    """The file that was given, else the first default file that is there, else None."""
    if given is not None:
        return config.load(given)
    return next((config.load(Path(name)) for name in DEFAULT_FILES if Path(name).exists()), None)


def chosen_agents(found: ConfigFile | None, names: str | None) -> tuple[Agent | str, ...] | None:
    """The agents that `names` asks for, else the file's, else None: whatever the system's default is.

    A name is the id of an agent of the file, or the role of some; any other name stays a name, for the system to
    know. Raises CommandError for one that is named twice, or that judges.
    """
    team = found.agents if found is not None and found.team_given else ()
    if names is None:
        return team or None
    chosen: dict[str, Agent | str] = {}
    for name in (part.strip() for part in names.split(",")):
        if not _ID.fullmatch(canonical_role(name)):
            problem = f"{name!r} is neither an id nor a role" if name else "has an empty name"
            raise CommandError(f"--agents {names}: {problem}", INVALID_ARGUMENTS)
        called = [agent for agent in team if agent.id == name] or [
            agent for agent in team if agent.role == canonical_role(name)
        ]
        if not called and canonical_role(name) == _JUDGE:
            raise CommandError(f"--agents {names}: the judge cannot debate", INVALID_ARGUMENTS)
        found_here: dict[str, Agent | str] = {agent.id: agent for agent in called}
        if not called:
            found_here[canonical_role(name)] = name
        twice = next((each for each in found_here if each in chosen), None)
        if twice is not None:
            raise CommandError(f"--agents {names}: {twice} is there twice", INVALID_ARGUMENTS)
        chosen.update(found_here)
    return tuple(chosen.values())


def participant(agent: Agent | str) -> Participant:
    """The agent as it travels: described, or by the name that the system may know it by."""
    return Participant(agent_id=agent) if isinstance(agent, str) else Participant(agent=agent_message(agent))


def of_role(name: str) -> Participant:
    """A new agent that has this role and nothing else of its own."""
    role = canonical_role(name)
    return participant(Agent(role, role, role))


def spec_of(
    question: str,
    found: ConfigFile | None,
    agents: Sequence[Agent | str] | None,
    format: str | None,  # noqa: A002 (the option's name)
    rounds: int | None,
    max_output_tokens: int | None,
) -> DebateSpec:
    """The specification; what neither the file nor an option says is left to the orchestrator.

    Providers that are away are waited for a few seconds only, unless the file says more.
    """
    spec = debate_message(found.debate) if found is not None else DebateSpec()
    spec.question = question
    spec.agents.extend(participant(agent) for agent in agents or ())
    if found is not None and found.judge_given:
        spec.judge.agent.CopyFrom(agent_message(found.judge))
    if format is not None:
        spec.format = format
    if rounds is not None:
        spec.rounds = rounds
    if max_output_tokens is not None:
        spec.max_output_tokens = max_output_tokens
    if not spec.limits.HasField("waiting"):
        spec.limits.waiting.FromSeconds(_WAITING_SECONDS)
    return spec
