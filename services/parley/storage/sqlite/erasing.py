"""Take what was deleted off the disk.

`secure_delete` overwrites a deleted row where it stands. Two kinds of copies are left: the pages in the WAL, and what stood on
a page before its rows were moved to another one.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path
from sqlite3 import Connection
from typing import Final

_VACUUM_BYTES: Final = 64 * 1024 * 1024
"""A larger file is not written anew: nobody could write to it for seconds."""
_WAIT_MS: Final = 200
"""How long readers are waited for. Nothing is written meanwhile."""


def erase(connection: Connection, path: Path) -> bool:
    """Overwrite what was deleted and is left of it on pages, and empty the WAL. Return whether all is done; else try again later."""
    before = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    try:
        connection.execute(f"PRAGMA busy_timeout = {_WAIT_MS}")
        connection.execute("PRAGMA temp_store = MEMORY")  # a file would be another copy
        if path.stat().st_size <= _VACUUM_BYTES:
            connection.execute("VACUUM")
        return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except (sqlite3.Error, OSError):  # locked by another process, or the disk is full
        return False
    finally:
        with suppress(sqlite3.Error):
            connection.execute(f"PRAGMA busy_timeout = {before}")
