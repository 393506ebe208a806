"""The operator's keys, for tests of encryption."""

import base64
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from parley.storage.encryption.wrapping import FileKey, WrappingKeys


def create_keys() -> WrappingKeys:
    """Return a new key."""
    return WrappingKeys((FileKey(secrets.token_bytes(32)),))


def write_key(file: Path) -> Path:
    """Write a new key to a file, as PARLEY_ENCRYPTION_KEYS names it; return the file."""
    file.write_bytes(base64.b64encode(secrets.token_bytes(32)) + b"\n")
    return file


def damage_data_key(database: Path, service: str, scope: str) -> None:
    """Change the stored data key of a service's scope, so that no key of the operator unwraps it."""
    with closing(sqlite3.connect(database)) as connection, connection:
        changed = connection.execute(
            f"UPDATE {service}_documents_data_keys SET body = json_set(body, '$.wrapped', ?) WHERE json_extract(body, '$.scope') = ?",
            (base64.b64encode(bytes(60)).decode(), scope),
        )
        assert changed.rowcount == 1, scope
