"""The identity of a call: each document, log and vector belongs to a tenant, and no tenant sees another's."""

import re
from contextvars import ContextVar
from typing import Final, TypeAlias

from msgspec import Struct

from parley.runtime.errors import FieldViolation, invalid_argument
from parley.runtime.labels import LABELS
from parley.v1.access_pb2 import AccessRole
from parley.v1.key_pb2 import KeyBudget

DEFAULT_TENANT: Final = "default"

Role: TypeAlias = AccessRole.ValueType

# It is a part of keys, so it must not contain their separators.
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Identity(Struct, frozen=True):
    """The caller of an RPC.

    Attributes:
        tenant: The tenant whose debates it sees.
        subject: Its name within the authentication method, such as a key's name, for logs and events; empty without authentication.
        roles: Its roles.
        proven: Whether it authenticated. If not, the tenant is whatever the caller wrote.
        budget: What the debates of its key may use; None: what the tenant may.
        budget_key_id: The id of the key with that budget.
    """

    tenant: str
    subject: str = ""
    roles: frozenset[Role] = frozenset()
    proven: bool = True
    budget: KeyBudget | None = None
    budget_key_id: str = ""


_UNKNOWN: Final = Identity(DEFAULT_TENANT, proven=False)
_identity: ContextVar[Identity] = ContextVar("parley_identity", default=_UNKNOWN)


def current_identity() -> Identity:
    """Return the caller of the current call."""
    return _identity.get()


def set_identity(identity: Identity) -> None:
    """Set the caller of this task's call."""
    _identity.set(identity)


def current_tenant() -> str:
    """Return the tenant of the current call. Raise INVALID_ARGUMENT if a caller without authentication sent a bad name."""
    name = _identity.get().tenant
    if not is_tenant(name):
        raise invalid_argument([FieldViolation(LABELS["tenant"], f"must match {_TENANT.pattern}")])
    return name


def is_tenant(name: str) -> bool:
    """Return whether a tenant may have this name."""
    return bool(_TENANT.fullmatch(name))
