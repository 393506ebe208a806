"""The agents file, read again when it changes or on SIGHUP. A file that cannot be used changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from parley.runtime.errors import ConfigurationError
from parley.runtime.logs import get_logger

__all__ = ["FileWatch"]

_LOOK_SECONDS = 1.0

_logger = get_logger(__name__)


class FileWatch:
    """Follows a file. `apply` reads it and takes it over whole, or raises ConfigurationError and changes nothing."""

    def __init__(self, path: Path, hangup: asyncio.Event, apply: Callable[[], Awaitable[None]]) -> None:
        self._path = path
        self._hangup = hangup
        self._apply = apply
        self._seen = _stamp(path)

    async def run(self) -> None:
        """Follow the file for ever."""
        while True:
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._hangup.wait()
            except TimeoutError:
                pass
            stamp = await asyncio.to_thread(_stamp, self._path)
            if stamp == self._seen and not self._hangup.is_set():
                continue
            self._hangup.clear()
            self._seen = stamp
            try:
                await self._apply()
            except ConfigurationError as error:
                _logger.error("agents file not taken over", file=str(self._path), problems=error.problems)  # noqa: TRY400
            else:
                _logger.info("agents file taken over", file=str(self._path))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return what tells one content of the file from the next; a mounted file changes as a new one behind a link."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
