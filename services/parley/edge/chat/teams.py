"""Teams as models: a folder of configuration files, each a model by its name."""

import re
from pathlib import Path
from typing import Final

from parley.config.errors import ConfigError
from parley.config.formats import FORMATS
from parley.config.loading import load
from parley.config.messages import agent_message, debate_message
from parley.edge.chat.catalogue import Model, go_unattended
from parley.runtime.errors import ConfigurationError
from parley.v1.debate_pb2 import DebateSpec, Participant

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def load_teams(folder: Path) -> list[Model]:
    """Return a model for each configuration file of a folder, by the names of the files.

    Raise ConfigurationError for a folder or files that cannot be used; every bad file is named.
    """
    try:
        files = sorted(each for each in folder.iterdir() if each.suffix in _SUFFIXES)
    except OSError as error:
        raise ConfigurationError(f"PARLEY_EDGE_TEAMS: {folder}: {error.strerror}") from None
    models, problems = [], list(_find_bad_names(files))
    for each in files:
        try:
            models.append(Model(each.stem, _read_spec(each)))
        except ConfigError as error:
            problems.append(f"PARLEY_EDGE_TEAMS: {error}")
    if problems:
        raise ConfigurationError(*problems)
    return models


def _find_bad_names(files: list[Path]) -> list[str]:
    taken = {each.name for each in FORMATS}
    problems = []
    for each in files:
        if not _NAME.fullmatch(each.stem):
            problems.append(
                f"PARLEY_EDGE_TEAMS: {each}: its name must be one of a model, such as review.yaml"
            )
        elif each.stem in taken:
            problems.append(
                f"PARLEY_EDGE_TEAMS: {each}: {each.stem} is a model already; give the file another name"
            )
        taken.add(each.stem)
    return problems


def _read_spec(file: Path) -> DebateSpec:
    found = load(file)
    spec = debate_message(found.debate)
    spec.format = found.format or ""
    if found.team_given:
        spec.agents.extend(Participant(agent=agent_message(each)) for each in found.agents)
    if found.judge_given:
        spec.judge.agent.CopyFrom(agent_message(found.judge))
    go_unattended(spec)
    return spec
