"""The format of a role's file: Markdown, with a section for each kind of instruction to an agent of the role.

A line `aliases: a, b` may stand first; then come the prompts, each under `# ` and the name of what it is for.
"""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from msgspec import Struct

_HEADING = re.compile(r"#[ \t]+(?P<name>\S.*?)[ \t]*")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_ALIASES = "aliases:"


class RoleFileError(Exception):
    """A role's file cannot be used. The message names the file and what is wrong with it."""


class Role(Struct, frozen=True):
    """A role.

    Attributes:
        aliases: Other names of the role.
        prompts: Instructions by purpose; not blank.
    """

    name: str
    aliases: tuple[str, ...]
    prompts: Mapping[str, str]

    def serves(self, sections: Collection[str]) -> bool:
        """Return whether it has all of these prompts."""
        return self.prompts.keys() >= set(sections)


def parse_role(name: str, text: str, where: str = "") -> Role:
    """Return the role in the file of `name`; `where` is the file's name in messages.

    Raises:
        RoleFileError: it cannot be used.
    """
    where = where or f"roles/{name}.md"
    front, sections = _split(where, text)
    blank = sorted(section for section, body in sections.items() if not body)
    if blank:
        raise _fault(where, f"has blank sections: {', '.join(blank)}")
    return Role(name, _aliases(where, front), MappingProxyType(sections))


def _split(where: str, text: str) -> tuple[list[str], dict[str, str]]:
    """Return the lines before the first heading, and the text under each."""
    front: list[str] = []
    sections: dict[str, list[str]] = {}
    lines = front
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line)
        if heading is None:
            lines.append(line)
        elif heading["name"] in sections:
            raise _fault(where, f"has the section {heading['name']} twice")
        else:
            lines = sections.setdefault(heading["name"], [])
    texts = {section: "\n".join(lines).strip() for section, lines in sections.items()}
    return [line for line in front if line.strip()], texts


def _aliases(where: str, front: list[str]) -> tuple[str, ...]:
    if not front:
        return ()
    if len(front) > 1 or not front[0].startswith(_ALIASES):
        raise _fault(
            where, f"may have one line `{_ALIASES} NAME, NAME` before its first section, and nothing else"
        )
    aliases = tuple(alias.strip() for alias in front[0].removeprefix(_ALIASES).split(","))
    bad = [alias for alias in aliases if not _NAME.fullmatch(alias)]
    if bad:
        raise _fault(where, f"has an alias that is no name: {bad[0]!r}")
    return aliases


def _fault(where: str, what: str) -> RoleFileError:
    return RoleFileError(f"{where} {what}")
