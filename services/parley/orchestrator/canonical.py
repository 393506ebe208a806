"""Canonical JSON: one text for one value, so that digests and hashes are stable."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

__all__ = ["ADDED_LATER", "canonical_json", "digest", "digested"]

_MARK: Final = "added later"
ADDED_LATER: Final[Mapping[str, bool]] = MappingProxyType({_MARK: True})
"""Metadata of a dataclass field that came when digests without it were already recorded. It needs a default."""


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no white space, no escapes that are not needed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """Return 32 hex digits that stand for a JSON value."""
    return hashlib.blake2b(canonical_json(value).encode(), digest_size=16).hexdigest()


def digested(value: Any) -> Any:
    """Return a value of dataclasses as the JSON value that its digest is made of.

    A field that was added later is left out while it holds its default, so that what does not use it has the digest it
    had before.
    """
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        held = {each.name: getattr(value, each.name) for each in fields if not _is_unused(each, value)}
        return digested(held)
    if isinstance(value, Mapping):
        return {key: digested(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [digested(each) for each in value]
    return value


def _is_unused(field: "dataclasses.Field[Any]", value: Any) -> bool:
    return _MARK in field.metadata and getattr(value, field.name) == field.default
