"""What is wrong with a debate that is asked for, said where it was asked: at an option or in the file."""

import re
from collections.abc import Sequence
from typing import Final

from parley.cli.choosing import of_role
from parley.cli.failures import INVALID_ARGUMENTS, CommandError
from parley.client import DebateSpec, ParleyError
from parley.config import Agent, ConfigError, ConfigFile

__all__ = ["located", "names_as_roles", "refuse_unknown"]

_UNKNOWN_AGENT: Final = re.compile(r"spec\.agents\[(\d+)\]\.agent_id")
_AGENT_FIELD: Final = re.compile(r"spec\.agents\[(\d+)\]")
_DOCUMENT_FIELD: Final = re.compile(r"spec\.context(?:\[(\d+)\])?")
_JUDGE: Final = "judge"


def refuse_unknown(
    found: ConfigFile | None,
    agents: Sequence[Agent | str] | None,
    format: str | None,  # noqa: A002 (the option's name)
) -> None:
    """Refuses formats and roles that a system of our own does not know, without starting one.

    Raises CommandError or ConfigError.
    """
    from parley.local import known_formats, known_roles

    if format is not None and format.partition("@")[0] not in known_formats():
        raise CommandError(
            f"--format: unknown format {format!r}; known formats: {', '.join(known_formats())}",
            INVALID_ARGUMENTS,
        )
    roles = known_roles()
    accepted = {name for role, others in roles.items() for name in (role, *others)}
    listed = f"known roles: {', '.join(sorted(roles))}"
    for name in agents or ():
        if isinstance(name, str) and name not in accepted:
            raise CommandError(f"--agents: unknown role {name!r}; {listed}", INVALID_ARGUMENTS)
    if found is None:
        return
    wrong = [
        f"{found.places.of(f'{agent.path}.role')}: {_unfit(agent.role)}; {listed}"
        for agent in (agents if agents is not None else found.agents)
        if isinstance(agent, Agent) and agent.role not in accepted
    ]
    if found.judge_given and found.judge.role not in accepted | {_JUDGE}:
        wrong.append(
            f"{found.places.of('judge.role')}: unknown role {found.judge.role!r}; {listed}, {_JUDGE}"
        )
    if wrong:
        raise ConfigError(*wrong)


def _unfit(role: str) -> str:
    return f"role {_JUDGE!r} judges and cannot debate" if role == _JUDGE else f"unknown role {role!r}"


def names_as_roles(error: ParleyError, spec: DebateSpec) -> bool:
    """Makes roles of the names in --agents that the system knows no agent by; whether there were any."""
    unknown = [_UNKNOWN_AGENT.fullmatch(violation.field) for violation in error.violations]
    for match in unknown:
        if match is not None:
            participant = spec.agents[int(match[1])]
            participant.CopyFrom(of_role(participant.agent_id))
    return any(unknown)


def located(error: ParleyError, found: ConfigFile | None, spec: DebateSpec) -> Exception:
    """The refusal of a new debate, placed in the file or at the option that it comes from."""
    for violation in error.violations:
        if violation.field == "spec.format":
            return CommandError(f"--format: {violation.description}", INVALID_ARGUMENTS)
        document = _DOCUMENT_FIELD.match(violation.field)
        if document is not None:
            about = f"{spec.context[int(document[1])].path!r} " if document[1] else ""
            return CommandError(f"--context: {about}{violation.description}", INVALID_ARGUMENTS)
        number = _AGENT_FIELD.match(violation.field)
        if number is not None:
            agent = spec.agents[int(number[1])].agent if int(number[1]) < len(spec.agents) else None
            known = {each.id: each.path for each in found.agents if each.path} if found is not None else {}
            path = known.get(agent.id) if agent is not None else None
            if path is None:
                return CommandError(f"--agents: {violation.description}", INVALID_ARGUMENTS)
        elif violation.field.startswith("spec.judge"):
            path = "judge"
        elif violation.field.startswith("spec.termination"):
            path = "debate.termination"
        else:
            continue
        if found is not None:
            key = violation.field.rpartition(".")[2]
            place = found.places.of(f"{path}.{key}" if key in {"role", "routes", "name", "id"} else path)
            return ConfigError(f"{place}: {violation.description}")
    return error
