"""The error of a debate that failed."""

from collections.abc import Sequence
from pathlib import Path

from parley import config
from parley.cli.commands.likely_cause import explain_provider_failure
from parley.cli.errors import GENERAL, PROVIDER_FAILED, CommandError
from parley.cli.terminal.words import debating_agents, work_phase_text
from parley.cli.translate_errors import is_provider_failure
from parley.client import Debate
from parley.config import ConfigFile
from parley.v1.debate_pb2 import DebateFailure

__all__ = ["debate_failure"]

_AUTH = "PROVIDER_AUTH"


def debate_failure(
    state: Debate, found: ConfigFile | None, default_routes: Sequence[str], log: Path | None, *, own: bool
) -> CommandError:
    """Return the error of a failed debate: who failed in which phase, why, and what may mend it.

    `own` says that it failed in a system of this process, whose settings are known here.
    """
    failure = state.failure
    agents = _failed_agents(state)
    where = " in ".join(part for part in (", ".join(agents), failure.phase) if part)
    message = f"{failure.reason}: {failure.message}"
    if where:
        message = f"{where}: {message}"
    if failure.reason == "INTERNAL" and log is not None:
        message = f"{message} ({log})"
    if own:
        message += explain_provider_failure((found or config.defaults()).providers, failure.message)
    if failure.reason == _AUTH:
        variables = _key_variables(state, agents, found, default_routes)
        message += f"; check {' and '.join(variables)}" if variables else ""
    return CommandError(message, PROVIDER_FAILED if _is_provider_failure(state, failure) else GENERAL)


def _failed_agents(state: Debate) -> tuple[str, ...]:
    """Return the agent whose failure decided it, and those that failed in the same way in the same phase."""
    failure = state.failure
    if not failure.agent_id:
        return ()
    alike = (
        each.work.agent_id
        for each in state.failures
        if (work_phase_text(each.work), each.reason, each.message)
        == (failure.phase, failure.reason, failure.message)
    )
    return tuple(dict.fromkeys((failure.agent_id, *alike)))


def _key_variables(
    state: Debate, agents: Sequence[str], found: ConfigFile | None, default_routes: Sequence[str]
) -> list[str]:
    """Return the variables that hold the keys of the providers of these agents."""
    known = found or config.defaults()
    providers = {each.name: each for each in known.providers}
    of_routes = {each.name: each.provider for each in known.routes}
    described = [*debating_agents(state), state.spec.judge.agent]
    routes = [
        route for agent in described if agent.id in agents for route in (agent.routes or default_routes)
    ]
    names = (of_routes.get(route) or route.partition("/")[0] for route in routes)
    used = [providers[name].api_key_env for name in names if name in providers]
    return list(dict.fromkeys(variable for variable in used if variable is not None))


def _is_provider_failure(state: Debate, failure: DebateFailure) -> bool:
    """Return whether providers are behind it: by its reason, or by that of every step it names."""
    if is_provider_failure(failure.reason):
        return True
    reasons = [each.reason for each in state.failures if each.key in failure.steps]
    return bool(reasons) and all(is_provider_failure(reason) for reason in reasons)
