"""The operator's keys, for tests of encryption."""

import base64
import secrets
from pathlib import Path

from parley.storage.encryption.wrapping import FileKey, WrappingKeys


def create_keys(count: int = 1) -> WrappingKeys:
    """Return new keys, the first of which wraps."""
    return WrappingKeys(tuple(FileKey(secrets.token_bytes(32)) for _ in range(count)))


def write_key(file: Path) -> Path:
    """Write a new key to a file, as PARLEY_ENCRYPTION_KEYS names it; return the file."""
    file.write_bytes(base64.b64encode(secrets.token_bytes(32)) + b"\n")
    return file
