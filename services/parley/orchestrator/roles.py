"""Roles: what an agent of a role is told in each phase. A role is one file in `roles/`, and nothing else.

The file's name is the role's. A line `aliases: a, b` may stand first; then come the prompts, each under `# ` and the
name of what it is for.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

__all__ = [
    "DEBATER_PROMPTS",
    "JUDGE_PROMPTS",
    "Role",
    "RoleFileError",
    "UnknownRoleError",
    "get",
    "known",
    "parse_role",
]

DEBATER_PROMPTS = frozenset({"system", "propose", "critique", "refine", "summarize", "clarify"})
"""What a role that debates is told."""

JUDGE_PROMPTS = frozenset({"system", "summarize", "synthesize", "assess"})
"""What a role that judges is told."""

_HEADING = re.compile(r"#[ \t]+(?P<name>\S.*?)[ \t]*")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_ALIASES = "aliases:"


class UnknownRoleError(Exception):
    """No role has this name. The message lists those there are."""


class RoleFileError(Exception):
    """A role's file cannot be used. The message names the file and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Role:
    """A role.

    Attributes:
        aliases: Other names it is accepted under.
        prompts: Instructions by what they are for; not blank.
    """

    name: str
    aliases: tuple[str, ...]
    prompts: Mapping[str, str]

    @property
    def can_debate(self) -> bool:
        """Whether it has all prompts of an agent that debates."""
        return self.prompts.keys() >= DEBATER_PROMPTS

    @property
    def can_judge(self) -> bool:
        """Whether it has all prompts of a judge."""
        return self.prompts.keys() >= JUDGE_PROMPTS

    def prompt(self, name: str) -> str:
        """Return the instructions for `propose`, say.

        Raises:
            KeyError: the role has none for this; see `can_debate` and `can_judge`.
        """
        return self.prompts[name]


def known() -> tuple[str, ...]:
    """Return the names of all roles, sorted, without aliases."""
    return tuple(sorted({role.name for role in _by_name().values()}))


def get(name: str) -> Role:
    """Return a role by its name or an alias.

    Raises:
        UnknownRoleError: there is none of this name.
    """
    role = _by_name().get(name)
    if role is None:
        raise UnknownRoleError(f"unknown role {name!r}; known roles: {', '.join(known())}")
    return role


def parse_role(name: str, text: str) -> Role:
    """Return the role that a file named `name` holds.

    Raises:
        RoleFileError: it cannot be used.
    """
    front, sections = _split(name, text)
    role = Role(name, _aliases(name, front), MappingProxyType(sections))
    unknown = sections.keys() - DEBATER_PROMPTS - JUDGE_PROMPTS
    if unknown:
        raise _fault(name, f"has sections that nothing reads: {', '.join(sorted(unknown))}")
    blank = sorted(section for section, told in sections.items() if not told)
    if blank:
        raise _fault(name, f"has blank sections: {', '.join(blank)}")
    if not (role.can_debate or role.can_judge):
        meant = JUDGE_PROMPTS if "synthesize" in sections or "assess" in sections else DEBATER_PROMPTS
        raise _fault(name, f"lacks sections: {', '.join(sorted(meant - sections.keys()))}")
    return role


@cache
def _by_name() -> Mapping[str, Role]:
    """Read the shipped roles, once, under every name they are accepted by."""
    folder = files("parley.orchestrator") / "roles"
    entries = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".md")), key=lambda entry: entry.name
    )
    return _index(parse_role(entry.name.removesuffix(".md"), entry.read_text("utf-8")) for entry in entries)


def _index(roles: Iterable[Role]) -> Mapping[str, Role]:
    found: dict[str, Role] = {}
    for role in roles:
        for name in (role.name, *role.aliases):
            if name in found:
                raise _fault(role.name, f"takes the name {name}, which is {found[name].name}'s already")
            found[name] = role
    return found


def _split(name: str, text: str) -> tuple[list[str], dict[str, str]]:
    """Return the lines before the first heading, and the text under each."""
    front: list[str] = []
    sections: dict[str, list[str]] = {}
    lines = front
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line)
        if heading is None:
            lines.append(line)
        elif heading["name"] in sections:
            raise _fault(name, f"has the section {heading['name']} twice")
        else:
            lines = sections.setdefault(heading["name"], [])
    told = {section: "\n".join(lines).strip() for section, lines in sections.items()}
    return [line for line in front if line.strip()], told


def _aliases(name: str, front: list[str]) -> tuple[str, ...]:
    if not front:
        return ()
    if len(front) > 1 or not front[0].startswith(_ALIASES):
        raise _fault(
            name, f"may have one line `{_ALIASES} NAME, NAME` before its first section, and nothing else"
        )
    aliases = tuple(alias.strip() for alias in front[0].removeprefix(_ALIASES).split(","))
    bad = [alias for alias in aliases if not _NAME.fullmatch(alias)]
    if bad:
        raise _fault(name, f"has an alias that is no name: {bad[0]!r}")
    return aliases


def _fault(name: str, what: str) -> RoleFileError:
    return RoleFileError(f"roles/{name}.md {what}")
