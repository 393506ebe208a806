"""Names of roles as people write them."""

from collections.abc import Mapping
from typing import Final

__all__ = ["canonical_role"]

_OTHER_NAMES: Final[Mapping[str, str]] = {
    "kiss": "simplicity",
    "datamodeling": "data-modeling",
    "data_modeling": "data-modeling",
}


def canonical_role(name: str) -> str:
    """Return the role's own name, or a name not known here in lower case."""
    lower = name.strip().lower()
    return _OTHER_NAMES.get(lower, lower)
