"""How a debate ended, and its answer put where it was asked for."""

import sys
from collections.abc import Sequence
from pathlib import Path

from parley import config
from parley.cli.display import say
from parley.cli.errors import is_provider_failure
from parley.cli.failures import GENERAL, PROVIDER_FAILED, CommandError
from parley.cli.output import debate_json, report_path, solution_text, write
from parley.cli.words import phase_of, phase_words
from parley.client import Debate
from parley.config import ConfigFile
from parley.v1.orchestrator_pb2 import DebateFailure

__all__ = ["failed", "put_out", "write_report"]

_AUTH = "PROVIDER_AUTH"


def put_out(state: Debate, output: Path | None) -> None:
    """Prints the answer, or writes it to the file; one that cannot be written is printed too. Raises CommandError."""
    answer = solution_text(state.solution)
    if output is None:
        sys.stdout.write(answer)
        return
    try:
        write(output, debate_json(state) if output.suffix.lower() == ".json" else answer)
    except CommandError as error:
        sys.stdout.write(answer)
        raise CommandError(f"--output {error}", error.code) from None
    say(f"Answer: {output}")


def write_report(path: Path, text: str) -> None:
    """Writes the report; a failure is only a warning."""
    target = report_path(path)
    try:
        write(target, text)
    except CommandError as error:
        say(f"warning: --report {error}")
    else:
        say(f"Report: {target}")


def failed(
    state: Debate, found: ConfigFile | None, default_routes: Sequence[str], log: Path | None
) -> CommandError:
    """The error of a failed debate: who failed in which phase, why, and which variable may mend it."""
    failure = state.failure
    agents = _agents(state)
    where = " in ".join(part for part in (", ".join(agents), phase_words(failure.phase)) if part)
    message = f"{failure.reason}: {failure.message}"
    if where:
        message = f"{where}: {message}"
    if failure.reason == "INTERNAL" and log is not None:
        message = f"{message} ({log})"
    if failure.reason == _AUTH:
        variables = _key_variables(state, agents, found, default_routes)
        message += f"; check {' and '.join(variables)}" if variables else ""
    return CommandError(message, PROVIDER_FAILED if _provider_failed(state, failure) else GENERAL)


def _agents(state: Debate) -> tuple[str, ...]:
    """The agent whose failure decided it, and those that failed in the same way in the same phase."""
    failure = state.failure
    if not failure.agent_id:
        return ()
    alike = (
        each.agent_id
        for each in state.failures
        if (phase_of(each), each.reason, each.message) == (failure.phase, failure.reason, failure.message)
    )
    return tuple(dict.fromkeys((failure.agent_id, *alike)))


def _key_variables(
    state: Debate, agents: Sequence[str], found: ConfigFile | None, default_routes: Sequence[str]
) -> list[str]:
    """The variables that hold the keys of the providers of these agents."""
    known = found or config.defaults()
    providers = {each.name: each for each in known.providers}
    of_routes = {each.name: each.provider for each in known.routes}
    described = [each.agent for each in (*state.spec.agents, state.spec.judge)]
    routes = [
        route for agent in described if agent.id in agents for route in (agent.routes or default_routes)
    ]
    names = (of_routes.get(route) or route.partition("/")[0] for route in routes)
    used = [providers[name].api_key_env for name in names if name in providers]
    return list(dict.fromkeys(variable for variable in used if variable is not None))


def _provider_failed(state: Debate, failure: DebateFailure) -> bool:
    """Whether providers are behind it: by its reason, or by that of every step it names."""
    if is_provider_failure(failure.reason):
        return True
    reasons = [each.reason for each in state.failures if each.key in failure.steps]
    return bool(reasons) and all(is_provider_failure(reason) for reason in reasons)
