"""Canonical JSON: one text for one value, so that digests and hashes are stable."""

import hashlib
import json
from typing import Any

__all__ = ["canonical_json", "digest"]


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no white space, no escapes that are not needed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """Return 32 hex digits that stand for a JSON value."""
    return hashlib.blake2b(canonical_json(value).encode(), digest_size=16).hexdigest()
