"""What a system of our own would refuse, refused before one is started."""

import os
from collections.abc import Sequence

from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.input.agents import JUDGE
from parley.config import Agent, ConfigError, ConfigFile

__all__ = ["check_without_system"]


def check_without_system(
    found: ConfigFile | None,
    agents: Sequence[Agent | str] | None,
    format: str | None = None,  # noqa: A002 (the option's name)
    *,
    evaluating: bool = False,
) -> None:
    """Refuse, before it starts, what a system of our own would refuse. Raise CommandError or ConfigError.

    `evaluating`: the agents judge a debate, in any role and without a judge.
    """
    from parley.local import running_address

    if running_address() is not None:  # its keys and roles count
        return
    if found is not None:
        described = [each for each in (agents or found.agents) if isinstance(each, Agent)]
        missing = found.missing_key(os.environ, described if evaluating else (*described, found.judge))
        if missing is not None:
            raise missing
    # Names are left to a system whose agents are in a file that it finds by itself.
    known = found is not None or not os.environ.get("PARLEY_AGENTS_FILE")
    _check_names(found, agents if known else None, format, evaluating=evaluating)


def _check_names(
    found: ConfigFile | None,
    agents: Sequence[Agent | str] | None,
    format: str | None,  # noqa: A002 (the option's name)
    *,
    evaluating: bool,
) -> None:
    """Refuse formats and roles that a system of our own does not know, without starting one."""
    from parley.local import list_formats, list_roles

    wrong: list[str] = []
    if format is not None and format.partition("@")[0] not in list_formats():
        wrong.append(f"--format: {_unknown_format(format)}")
    roles = list_roles(evaluating=evaluating)
    own = {each.name for each in found.roles} if found is not None else set()
    accepted = {name for role, others in roles.items() for name in (role, *others)} | own
    listed = f"known roles: {', '.join(sorted({*roles, *own}))}"
    unknown = [name for name in agents or () if isinstance(name, str) and name not in accepted]
    if unknown:
        kinds = "roles" if len(unknown) > 1 else "role"
        wrong.append(f"--agents: unknown {kinds} {', '.join(map(repr, unknown))}; {listed}")
    if wrong:
        raise CommandError(wrong[0], INVALID_ARGUMENTS, tuple(wrong[1:]))
    if found is None:
        return
    written = None if evaluating or format is not None else found.debate.format
    if written is not None and written.partition("@")[0] not in list_formats():
        wrong.append(f"{found.places.of('debate.format')}: {_unknown_format(written)}")
    wrong += [
        f"{found.places.of(f'{agent.path}.role')}: {_unusable_role(agent.role)}; {listed}"
        for agent in (agents if agents is not None else found.agents)
        if isinstance(agent, Agent) and agent.role not in accepted
    ]
    if not evaluating and found.judge_given and found.judge.role not in accepted | {JUDGE}:
        wrong.append(f"{found.places.of('judge.role')}: unknown role {found.judge.role!r}; {listed}, {JUDGE}")
    if wrong:
        raise ConfigError(*wrong)


def _unknown_format(name: str) -> str:
    from parley.local import list_formats

    return f"unknown format {name!r}; known formats: {', '.join(list_formats())}"


def _unusable_role(role: str) -> str:
    return f"role {JUDGE!r} judges and cannot debate" if role == JUDGE else f"unknown role {role!r}"
