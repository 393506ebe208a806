"""The matches of each tenant, one log a tenant, and the table that follows it."""

import asyncio
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import uuid4

from parley.ratings.table import Change, Match, Table
from parley.storage.ports import AppendConflictError, Log, Record

__all__ = ["DebateReusedError", "Matches"]

_PAGE: Final = 1000


class DebateReusedError(Exception):
    """Another outcome is recorded for this debate."""


@dataclass(slots=True)
class _Followed:
    """A tenant's table as far as its log was read."""

    table: Table = field(default_factory=Table)
    sequence: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Matches:
    """Records matches and knows the ratings that follow from them, whichever replica recorded them."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._tenants: dict[str, _Followed] = {}

    async def table(self, tenant: str) -> Table:
        """The tenant's ratings after every match that is recorded by now.

        Raises:
            StorageError: the log cannot be read.
        """
        followed = self._tenants.setdefault(tenant, _Followed())
        async with followed.lock:
            await self._catch_up(tenant, followed)
        return followed.table

    async def record(self, tenant: str, match: Match) -> tuple[bool, tuple[Change, ...]]:
        """Records a match once; it is durable when this returns.

        Returns whether it was recorded before, and what it changed then or now.

        Raises:
            DebateReusedError: another outcome is recorded for its debate.
            StorageError: the log cannot be read or written.
        """
        followed = self._tenants.setdefault(tenant, _Followed())
        append_id = uuid4().hex
        async with followed.lock:
            while True:
                await self._catch_up(tenant, followed)
                if (counted := followed.table.counted(match.debate_id)) is not None:
                    recorded, changes = counted
                    if not recorded.same_outcome(match):
                        raise DebateReusedError(match.debate_id)
                    return True, changes
                record = Record(followed.sequence + 1, append_id, (_written(match),))
                try:
                    await self._log.append(_log_name(tenant), record)
                except AppendConflictError:
                    continue  # another replica was first; what it wrote is read next
                followed.sequence = record.last
                return False, followed.table.count(match)

    async def _catch_up(self, tenant: str, followed: _Followed) -> None:
        while records := await self._log.read(_log_name(tenant), followed.sequence, _PAGE):
            for record in records:
                for place, entry in enumerate(record.entries):
                    if record.first + place > followed.sequence:
                        followed.table.count(_read(entry))
                followed.sequence = record.last
            if len(records) < _PAGE:
                return


def _log_name(tenant: str) -> str:
    return f"matches/{tenant}"


def _written(match: Match) -> str:
    return json.dumps(
        {
            "debate_id": match.debate_id,
            "domain": match.domain,
            "recorded_at": match.recorded_at.isoformat(),
            "scores": dict(match.scores),
            "version": 1,
        },
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )


def _read(entry: str) -> Match:
    stored = json.loads(entry)
    return Match(
        debate_id=stored["debate_id"],
        domain=stored["domain"],
        scores=stored["scores"],
        recorded_at=datetime.fromisoformat(stored["recorded_at"]),
    )
