"""How many writes the commits of a SQLite store have."""

from collections.abc import Sequence
from typing import Any

import pytest

from parley.storage.sqlite.database import SqliteDatabase


def count_commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of writes of each commit from now on, of all SQLite stores."""
    commits: list[int] = []
    commit = SqliteDatabase._commit

    def count(self: SqliteDatabase, group: Sequence[Any]) -> Any:
        commits.append(len(group))
        return commit(self, group)

    monkeypatch.setattr(SqliteDatabase, "_commit", count)
    return commits
