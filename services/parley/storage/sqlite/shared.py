"""One open database a file and event loop, for all services that run there: they share its writer, and so its commits."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from parley.storage.sqlite.database import SqliteDatabase, open_database

_Key = tuple[asyncio.AbstractEventLoop, Path, bool]


class _Shared:
    """A database that is opened by its first user and closed after its last one."""

    def __init__(self) -> None:
        self.users = 0
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._database: SqliteDatabase | None = None

    async def open(self, path: Path, *, reading: bool) -> SqliteDatabase:
        async with self._opening:
            if self._database is None:
                self._database = await self._opened.enter_async_context(open_database(path, reading=reading))
            return self._database

    async def close(self) -> None:
        await self._opened.aclose()


_SHARED: dict[_Key, _Shared] = {}


@asynccontextmanager
async def share_database(path: Path, *, reading: bool) -> AsyncGenerator[SqliteDatabase, None]:
    """Open a file as `open_database` does, or use what is open already in this event loop. The last user closes it."""
    key = asyncio.get_running_loop(), path, reading
    shared = _SHARED.setdefault(key, _Shared())
    shared.users += 1
    try:
        yield await shared.open(path, reading=reading)
    finally:
        shared.users -= 1
        if not shared.users:
            del _SHARED[key]
            await shared.close()
