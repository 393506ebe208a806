"""Roles: their names as people write them, and roles of one's own, in the configuration file or in the folder `roles` next to it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from parley.config.prompts import Prompt, load_prompt
from parley.role_file import Role, RoleFileError, parse_role
from parley.runtime.validation import AGENT_ID

FOLDER: Final = "roles"
_SYSTEM: Final = "system"
# The shipped roles are files of the orchestrator, which are not read here.
OTHER_NAMES: Final[Mapping[str, str]] = {
    "kiss": "simplicity",
    "datamodeling": "data-modeling",
    "data_modeling": "data-modeling",
}


class OwnRole(Struct, frozen=True):
    """A role that is none of Parley's own, or takes the place of one.

    Attributes:
        aliases: Other names that agents may call it by.
        sections: Prompts by what they are for.
        source: The path of its file, or `FILE: roles.NAME`.
    """

    name: str
    aliases: tuple[str, ...]
    sections: Mapping[str, str]
    source: str


class RoleProblem(Struct, frozen=True):
    """Why a role cannot be used; `path` is its place in the configuration file, empty if it is in the folder."""

    path: str
    text: str


def canonical_role(name: str) -> str:
    """Return the role's own name, or a name not known here in lower case."""
    lower = name.strip().lower()
    return OTHER_NAMES.get(lower, lower)


def read_file_roles(section: Mapping[str, Any], folder: Path, name: str) -> Iterator[OwnRole | RoleProblem]:
    """Yield the roles of the `roles` section of the file `name`: each the path of a role's file, or its prompts."""
    for role, said in section.items():
        path = f"roles.{role}"
        if not AGENT_ID.fullmatch(role):
            yield RoleProblem(path, "must be up to 32 of a-z, 0-9 and `-`, and not begin with `-`")
        elif isinstance(said, str):
            loaded = load_prompt(folder, said)
            yield _parse(role, loaded, path) if isinstance(loaded, Prompt) else RoleProblem(path, loaded)
        elif isinstance(said, Mapping) and all(isinstance(text, str) for text in said.values()):
            yield _check_role(Role(role, (), said), f"{name}: {path}", path)
        else:
            yield RoleProblem(path, "must be the path of a role's file, or a mapping of prompts")


def read_folder_roles(folder: Path) -> Iterator[OwnRole | RoleProblem]:
    """Yield the roles of the folder `roles` next to the configuration file; files whose name is no role's are passed over."""
    try:
        files = sorted((folder / FOLDER).glob("*.md"))
    except OSError:
        return
    for file in files:
        if AGENT_ID.fullmatch(file.stem) and file.is_file():
            loaded = load_prompt(folder, f"{FOLDER}/{file.name}")
            yield _parse(file.stem, loaded, "") if isinstance(loaded, Prompt) else RoleProblem("", loaded)


def find_own_role(roles: Sequence[OwnRole], written: str) -> OwnRole | None:
    """Return the role of one's own that goes by a name or an alias, written in any case."""
    name = written.strip().lower()
    return next((each for each in roles if name in {each.name, *each.aliases}), None)


def find_duplicate_names(roles: Iterable[OwnRole]) -> Iterator[tuple[OwnRole, str]]:
    """Yield each role that takes a name which is taken, with the name."""
    taken: set[str] = set()
    for role in roles:
        for name in (role.name, *role.aliases):
            if name in taken:
                yield role, name
            taken.add(name)


def _parse(name: str, loaded: Prompt, path: str) -> OwnRole | RoleProblem:
    try:
        role = parse_role(name, loaded.text, loaded.source)
    except RoleFileError as error:
        return RoleProblem(path, str(error))
    return _check_role(role, loaded.source, path)


def _check_role(role: Role, source: str, path: str) -> OwnRole | RoleProblem:
    blank = sorted(name for name, text in role.prompts.items() if not text.strip())
    if blank:
        return RoleProblem(path, f"{source} has blank sections: {', '.join(blank)}")
    if _SYSTEM not in role.prompts:
        return RoleProblem(path, f"{source} lacks the section {_SYSTEM}")
    return OwnRole(role.name, role.aliases, dict(role.prompts), source)
