"""Whose call it is: every document, log and vector is kept by tenant, and none sees another's."""

import re
from typing import Final

from parley.runtime.errors import FieldViolation, invalid_argument
from parley.runtime.logs import LABELS, labels

__all__ = ["DEFAULT_TENANT", "current_tenant"]

DEFAULT_TENANT: Final = "default"

# It is a part of keys, so that it holds nothing that separates their parts.
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def current_tenant() -> str:
    """Return the tenant that the call in hand names, or `default`. Raise INVALID_ARGUMENT for a bad name."""
    name = labels().get("tenant", DEFAULT_TENANT)
    if not _TENANT.fullmatch(name):
        raise invalid_argument([FieldViolation(LABELS["tenant"], f"must match {_TENANT.pattern}")])
    return name
