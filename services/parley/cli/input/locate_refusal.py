"""Where a refusal of a new debate belongs: at an option or in the file."""

import re
from collections.abc import Sequence
from typing import Final

from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.client import DebateSpec, ParleyError
from parley.config import ConfigError, ConfigFile
from parley.config.messages import key_of_field
from parley.runtime.errors import FieldViolation

__all__ = ["locate_refusal"]

_AGENT_FIELD: Final = re.compile(r"spec\.agents\[(\d+)\]")
_ROUTE_FIELD: Final = re.compile(r"spec\.(agents\[\d+\]|judge)\.agent\.routes\[\d+\]")
_DOCUMENT_FIELD: Final = re.compile(r"spec\.context(?:\[(\d+)\])?")
_FORMAT_KEY: Final = "debate.format"
_AGENT_KEYS: Final = frozenset({"role", "routes", "name", "id"})


def locate_refusal(
    error: ParleyError, found: ConfigFile | None, spec: DebateSpec, model: str | None
) -> Exception:
    """Return the refusal of a new debate, placed in the file or at the option that it comes from."""
    of_model = [each for each in error.violations if model is not None and _ROUTE_FIELD.fullmatch(each.field)]
    if of_model:
        return CommandError(f"--model: {of_model[0].description}", INVALID_ARGUMENTS)
    placed = [_locate(each, found, spec) for each in error.violations]
    return _join([each for each in placed if each is not None]) or error


def _join(placed: Sequence[CommandError | ConfigError]) -> Exception | None:
    """Return one error that says what all of them say, each once."""
    if not placed:
        return None
    of_file = [each for each in placed if isinstance(each, ConfigError)]
    if len(of_file) == len(placed):
        return ConfigError(*dict.fromkeys(problem for each in of_file for problem in each.problems))
    lines = tuple(dict.fromkeys(str(each) for each in placed))
    return CommandError(lines[0], INVALID_ARGUMENTS, lines[1:])


def _locate(
    violation: FieldViolation, found: ConfigFile | None, spec: DebateSpec
) -> CommandError | ConfigError | None:
    field, description = violation.field, violation.description
    if field == "spec.format":
        if found is not None and found.debate.format == spec.format and found.places.is_written(_FORMAT_KEY):
            return ConfigError(f"{found.places.of(_FORMAT_KEY)}: {description}")
        return CommandError(f"--format: {description}", INVALID_ARGUMENTS)
    document = _DOCUMENT_FIELD.match(field)
    if document is not None:
        about = f"{spec.context[int(document[1])].path!r} " if document[1] else ""
        return CommandError(f"--context: {about}{description}", INVALID_ARGUMENTS)
    agent = _AGENT_FIELD.match(field)
    if agent is not None:
        path = _agent_path(int(agent[1]), found, spec)
        if path is None:
            return CommandError(f"--agents: {description}", INVALID_ARGUMENTS)
    else:
        path = "judge" if field.startswith("spec.judge") else _find_key(field, found)
    if found is None or path is None:
        return None
    key = field.rpartition(".")[2]
    if ".own_role" in field:
        key = "role"
    place = found.places.of(f"{path}.{key}" if key in _AGENT_KEYS else path)
    return ConfigError(f"{place}: {description}")


def _find_key(field: str, found: ConfigFile | None) -> str | None:
    """Return the key of the file that a setting comes from; None where the file does not say it."""
    key = key_of_field(field)
    if key is None or found is None:
        return None
    of_list = key.partition("[")[0]
    return next((each for each in (key, of_list) if found.places.is_written(each)), None)


def _agent_path(number: int, found: ConfigFile | None, spec: DebateSpec) -> str | None:
    """Return the place in the file of an agent of the specification; None for one that is not in a file."""
    if found is None or number >= len(spec.agents):
        return None
    paths = {each.id: each.path for each in found.agents if each.path}
    return paths.get(spec.agents[number].agent.id)
