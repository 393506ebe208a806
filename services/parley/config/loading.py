"""From a file, or none, to a configuration."""

import dataclasses
import functools
from pathlib import Path
from typing import Final

from parley.config.entries import DebateEntry, FileEntry
from parley.config.file import ConfigFile
from parley.config.findings import Findings
from parley.config.formats import DEFAULT
from parley.config.own_roles import OwnRole, RoleProblem, roles_of_file, roles_of_folder, taken_twice
from parley.config.prompts import is_outside
from parley.config.reading import Places, check, lists_evaluators
from parley.config.routes import Routes
from parley.config.source import parse, read
from parley.config.team import Team

__all__ = ["defaults", "load", "loads"]

_ROUND_TIMEOUTS: Final = ("debate.timeout_per_round", "debate.round_timeout_seconds")


def load(path: Path, *, evaluators: bool = False) -> ConfigFile:
    """Read a YAML file, or JSON where its name ends in `.json`. Raise ConfigError.

    With `evaluators`, a file may also list evaluators alone, under `agents` and without roles.
    """
    return loads(read(path), str(path), path.parent, evaluators=evaluators)


def loads(text: str, name: str, folder: Path, *, evaluators: bool = False) -> ConfigFile:
    """Read text as `load` reads a file: `name` stands in messages, prompt paths are taken from `folder`."""
    tree = parse(text, name)
    of_evaluators = evaluators and lists_evaluators(tree)
    file, places, notices = check(tree, name, of_evaluators=of_evaluators)
    return _configuration(file, folder, Findings(places, notices, tells_gaps=not of_evaluators))


@functools.cache
def defaults() -> ConfigFile:
    """Return what holds where there is no file."""
    built = _configuration(FileEntry(), None, Findings(Places("", {})))
    return dataclasses.replace(built, notices=(), gaps={})


def _configuration(file: FileEntry, folder: Path | None, findings: Findings) -> ConfigFile:
    """Return what an entry comes to. Without a `folder` there are no files beside it."""
    routes = Routes(file, folder or Path(), findings)
    roles = _own_roles(file, folder, findings)
    team = Team(file, folder or Path(), routes, roles, findings)
    agents, judge, evaluators = team.agents(), team.judge(), team.evaluators()
    if judge.id in {agent.id for agent in agents}:
        findings.problem(
            "judge.id" if file.judge else "agents", f"{judge.id} is the id of an agent and of the judge"
        )
    if file.debate is None:
        findings.gap("debate", DEFAULT.without_section)
    elif all(map(findings.places.is_written, _ROUND_TIMEOUTS)):
        findings.problem(
            "debate.round_timeout_seconds", "timeout_per_round says it too; leave one of them out"
        )
    findings.refuse()
    return ConfigFile(
        agents=agents,
        judge=judge,
        debate=file.debate or DebateEntry(),
        providers=routes.providers,
        routes=routes.routes,
        notices=tuple(findings.notices),
        warnings=tuple(findings.warnings),
        places=findings.places,
        team_given=file.agents is not None,
        judge_given=file.judge is not None,
        empty=file == FileEntry(),
        gaps=findings.gaps,
        evaluators=evaluators,
        roles=roles,
        # Of many lines a person is shown the first: files outside the folder before endpoints.
        reaching=tuple(sorted(findings.reaching, key=lambda each: ": providers[" in each)),
    )


def _own_roles(file: FileEntry, folder: Path | None, findings: Findings) -> tuple[OwnRole, ...]:
    found = [*roles_of_file(file.roles, folder or Path(), findings.places.name)]
    if folder is not None:
        found += roles_of_folder(folder)
    for each in found:
        if isinstance(each, RoleProblem) and each.path:
            findings.problem(each.path, each.text)
        elif isinstance(each, RoleProblem):
            findings.problem_elsewhere(each.text)
    roles = tuple(each for each in found if isinstance(each, OwnRole))
    for role, name in taken_twice(roles):
        findings.problem_elsewhere(f"{role.source}: {name} is the name of another role too")
    for each in roles:
        if is_outside(folder or Path(), each.source):
            findings.reaches_out(f"roles.{each.name}", each.source)
    return roles
