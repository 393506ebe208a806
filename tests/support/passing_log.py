"""A log that passes everything on to another one; what should be otherwise is overridden."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from parley.storage.ports import Log, Record


class PassingLog:
    """Stands before a log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        await self._log.append(log, record, **beside)

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        return await self._log.read(log, after, limit)

    def follow(self, log: str, after: int = 0) -> AsyncGenerator[Record, None]:
        return self._log.follow(log, after)

    async def delete(self, log: str) -> None:
        await self._log.delete(log)
