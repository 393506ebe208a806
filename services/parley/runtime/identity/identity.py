"""Whose call it is: every document, log and vector is kept by tenant, and none sees another's."""

import re
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, TypeAlias

from parley.runtime.errors import FieldViolation, invalid_argument
from parley.runtime.labels import LABELS
from parley.v1.access_pb2 import AccessRole

__all__ = [
    "DEFAULT_TENANT",
    "Identity",
    "Role",
    "current_identity",
    "current_tenant",
    "is_tenant",
    "set_identity",
]

DEFAULT_TENANT: Final = "default"

Role: TypeAlias = AccessRole.ValueType

# It is a part of keys, so that it holds nothing that separates their parts.
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who makes a call.

    Attributes:
        tenant: Whose debates it sees.
        subject: Who it is within its way in, such as a key's name, for logs and events; empty where nobody was asked.
        roles: What it may do.
        proven: Whether it was shown. If not, the service takes callers at their word, and the tenant is what they wrote.
    """

    tenant: str
    subject: str = ""
    roles: frozenset[Role] = frozenset()
    proven: bool = True


_UNKNOWN: Final = Identity(DEFAULT_TENANT, proven=False)
_identity: ContextVar[Identity] = ContextVar("parley_identity", default=_UNKNOWN)


def current_identity() -> Identity:
    """Return who makes the call in hand."""
    return _identity.get()


def set_identity(identity: Identity) -> None:
    """Make it the caller of this task's call."""
    _identity.set(identity)


def current_tenant() -> str:
    """Return the tenant of the call in hand. Raise INVALID_ARGUMENT for a bad name of a caller that is taken at its word."""
    name = _identity.get().tenant
    if not is_tenant(name):
        raise invalid_argument([FieldViolation(LABELS["tenant"], f"must match {_TENANT.pattern}")])
    return name


def is_tenant(name: str) -> bool:
    """Tell whether a tenant may have this name."""
    return bool(_TENANT.fullmatch(name))
