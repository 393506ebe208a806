"""Roles: the prompts of an agent in each phase. A role is one file in this folder, and nothing else.

The file's name is the role's name. The formats define which sections a role needs.
"""

from collections.abc import Collection, Iterable
from functools import cache
from importlib.resources import files

from parley.role_file import Role, RoleFileError, parse_role

__all__ = ["Role", "RoleFileError", "Roles", "UnknownRoleError", "load_shipped_roles", "parse_role"]


class UnknownRoleError(Exception):
    """No role has this name. The message lists the known roles."""


class Roles:
    """The roles that a replica knows."""

    def __init__(self, roles: Iterable[Role]) -> None:
        """Register these roles, each under its name and its aliases.

        Raise RoleFileError if two roles use the same name.
        """
        self._by_name: dict[str, Role] = {}
        for role in roles:
            for name in (role.name, *role.aliases):
                if name in self._by_name:
                    raise _file_error(
                        role.name, f"uses the name {name}, which role {self._by_name[name].name} already uses"
                    )
                self._by_name[name] = role

    def all(self) -> tuple[Role, ...]:
        """Return the roles, ordered by name."""
        return tuple(
            sorted({each.name: each for each in self._by_name.values()}.values(), key=lambda role: role.name)
        )

    def names(self) -> tuple[str, ...]:
        """Return the names of all roles, sorted, without aliases."""
        return tuple(each.name for each in self.all())

    def get(self, name: str) -> Role:
        """Return a role by its name or an alias. Raise UnknownRoleError if no role has this name."""
        role = self.find(name)
        if role is None:
            raise UnknownRoleError(f"unknown role {name!r}; known roles: {', '.join(self.names())}")
        return role

    def find(self, name: str) -> Role | None:
        """Return a role by its name or an alias, or None."""
        return self._by_name.get(name)

    def check(self, duties: Collection[Collection[str]]) -> None:
        """Check that each role has all sections of at least one duty, and no section that no duty reads.

        Raise RoleFileError if a role does not.
        """
        read = set().union(*duties)
        for role in self.all():
            unknown = role.prompts.keys() - read
            if unknown:
                raise _file_error(role.name, f"has sections that nothing reads: {', '.join(sorted(unknown))}")
            if not any(role.serves(sections) for sections in duties):
                nearest = min((set(sections) - role.prompts.keys() for sections in duties), key=len)
                raise _file_error(role.name, f"lacks sections: {', '.join(sorted(nearest))}")


@cache
def load_shipped_roles() -> Roles:
    """Return the roles that Parley ships; their files are read once. Raise RoleFileError if a file cannot be used."""
    entries = [each for each in files("parley.orchestrator.roles").iterdir() if each.name.endswith(".md")]
    return Roles(
        parse_role(each.name.removesuffix(".md"), each.read_text("utf-8"))
        for each in sorted(entries, key=lambda entry: entry.name)
    )


def _file_error(name: str, what: str) -> RoleFileError:
    return RoleFileError(f"roles/{name}.md {what}")
