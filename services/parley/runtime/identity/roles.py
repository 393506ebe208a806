"""The roles of callers, and the role that an RPC needs, which the contract declares as an option of the RPC."""

from collections.abc import Collection, Iterable
from typing import Final

from parley.runtime.contract_methods import method_option
from parley.runtime.identity.identity import Role
from parley.v1.access_pb2 import (
    ACCESS_ROLE_ADMIN,
    ACCESS_ROLE_DEBATE,
    ACCESS_ROLE_LINK,
    ACCESS_ROLE_READ,
    ACCESS_ROLE_SERVICE,
    ACCESS_ROLE_STEER,
    ACCESS_ROLE_UNSPECIFIED,
    AccessRole,
    needs,
)

EVERY_ROLE: Final = frozenset(set(AccessRole.values()) - {ACCESS_ROLE_UNSPECIFIED})
CLIENT_ROLES: Final = EVERY_ROLE - {ACCESS_ROLE_SERVICE, ACCESS_ROLE_LINK}
"""The roles that a key or a token can have: none makes its holder a service."""
LINK_ROLES: Final = frozenset({ACCESS_ROLE_LINK})
"""The roles of whoever shows a one-time link."""
_INCLUDED: Final = {
    ACCESS_ROLE_ADMIN: CLIENT_ROLES,
    ACCESS_ROLE_DEBATE: {ACCESS_ROLE_READ},
    ACCESS_ROLE_STEER: {ACCESS_ROLE_READ},
    ACCESS_ROLE_SERVICE: {ACCESS_ROLE_READ},
}


def needed_role(method: str) -> Role:
    """Return the role that an RPC (`parley.v1.GatewayService/Generate`) needs, or ACCESS_ROLE_UNSPECIFIED if it declares none."""
    role: Role = method_option(method, needs)
    return role


def allows(roles: Collection[Role], needed: Role) -> bool:
    """Return whether `roles` include the needed role."""
    return needed in roles or any(needed in _INCLUDED.get(role, ()) for role in roles)


def role_name(role: Role) -> str:
    """Return a role's name as people write it, such as `debate`."""
    return AccessRole.Name(role).removeprefix("ACCESS_ROLE_").lower()


def roles_by_name(names: Iterable[str], among: Collection[Role] = CLIENT_ROLES) -> frozenset[Role]:
    """Return the roles with these names. Raise ValueError for a name that is not among them."""
    known = {role_name(each): each for each in among}
    named = list(names)
    unknown = [each for each in named if each not in known]
    if unknown:
        raise ValueError(f"unknown role {unknown[0][:40]!r}; known roles: {', '.join(sorted(known))}")
    return frozenset(known[each] for each in named)
