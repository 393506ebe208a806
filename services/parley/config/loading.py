"""From a file, or none, to a configuration."""

from pathlib import Path
from typing import Final

from parley.config.entries import DebateEntry, FileEntry
from parley.config.file import ConfigFile
from parley.config.findings import Findings
from parley.config.formats import DEFAULT
from parley.config.prompts import is_outside
from parley.config.reading import check_tree, is_evaluators_file
from parley.config.roles import OwnRole, RoleProblem, find_duplicate_names, read_file_roles, read_folder_roles
from parley.config.routes import Routes
from parley.config.source import parse, read
from parley.config.team import Team

__all__ = ["load", "loads", "read"]

_ROUND_TIMEOUTS: Final = ("debate.timeout_per_round", "debate.round_timeout_seconds")


def load(path: Path, *, evaluators: bool = False) -> ConfigFile:
    """Read a YAML file, or JSON if its name ends in `.json`. Raise ConfigError.

    With `evaluators`, a file may also list evaluators alone, under `agents` and without roles.
    """
    return loads(read(path), str(path), path.parent, evaluators=evaluators)


def loads(text: str, name: str, folder: Path, *, evaluators: bool = False) -> ConfigFile:
    """Read text as `load` reads a file: `name` stands in messages, prompt paths are taken from `folder`."""
    tree = parse(text, name)
    of_evaluators = evaluators and is_evaluators_file(tree)
    file, places, notices = check_tree(tree, name, of_evaluators=of_evaluators)
    return _build(file, folder, Findings(places, notices, has_gaps=not of_evaluators))


def _build(file: FileEntry, folder: Path | None, findings: Findings) -> ConfigFile:
    """Return the configuration of a file's entries. Without a `folder`, no role files are read."""
    routes = Routes(file, folder or Path(), findings)
    roles = _read_own_roles(file, folder, findings)
    team = Team(file, folder or Path(), routes, roles, findings)
    agents, judge, evaluators = team.build_agents(), team.build_judge(), team.build_evaluators()
    if judge.id in {agent.id for agent in agents}:
        findings.add_problem(
            "judge.id" if file.judge else "agents", f"{judge.id} is the id of an agent and of the judge"
        )
    if file.debate is None:
        findings.add_gap("debate", DEFAULT.without_section)
    elif all(map(findings.places.is_written, _ROUND_TIMEOUTS)):
        findings.add_problem(
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
        reaching=findings.reaching,
    )


def _read_own_roles(file: FileEntry, folder: Path | None, findings: Findings) -> tuple[OwnRole, ...]:
    found = [*read_file_roles(file.roles, folder or Path(), findings.places.name)]
    if folder is not None:
        found += read_folder_roles(folder)
    for each in found:
        if isinstance(each, RoleProblem) and each.path:
            findings.add_problem(each.path, each.text)
        elif isinstance(each, RoleProblem):
            findings.add_problem_elsewhere(each.text)
    roles = tuple(each for each in found if isinstance(each, OwnRole))
    for role, name in find_duplicate_names(roles):
        findings.add_problem_elsewhere(f"{role.source}: {name} is the name of another role too")
    for each in roles:
        if is_outside(folder or Path(), each.source):
            findings.add_outside(f"roles.{each.name}", each.source)
    return roles
