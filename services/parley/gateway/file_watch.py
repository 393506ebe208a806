"""The agents file and the files of keys that it names, read again when one changes or on SIGHUP.

What cannot be used changes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from parley.runtime.errors import ConfigurationError
from parley.runtime.logs import get_logger
from parley.runtime.watched_files import FileVersion, file_version

_LOOK_SECONDS = 1.0

_logger = get_logger(__name__)


class FileWatch:
    """Watches a file, and the `others` that belong to what was applied last.

    `apply` reads them and takes all over, or raises ConfigurationError and changes nothing.
    """

    def __init__(
        self,
        path: Path,
        hangup: asyncio.Event,
        apply: Callable[[], Awaitable[None]],
        others: Callable[[], Sequence[Path]],
    ) -> None:
        self._path = path
        self._others = others
        self._hangup = hangup
        self._apply = apply
        self._seen = _read_stamps(self._paths_to_watch())

    async def run(self) -> None:
        """Follow the file for ever."""
        while True:
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._hangup.wait()
            except TimeoutError:
                pass
            stamps = await asyncio.to_thread(_read_stamps, self._paths_to_watch())
            if stamps == self._seen and not self._hangup.is_set():
                continue
            self._hangup.clear()
            self._seen = stamps
            try:
                await self._apply()
            except ConfigurationError as error:
                _logger.error("agents file not taken over", file=str(self._path), problems=error.problems)  # noqa: TRY400
            else:
                _logger.info("agents file taken over", file=str(self._path))

    def _paths_to_watch(self) -> tuple[Path, ...]:
        return self._path, *self._others()


def _read_stamps(paths: Sequence[Path]) -> dict[Path, FileVersion]:
    """Return the stamp of each file that is there."""
    found = {}
    for path in paths:
        with suppress(OSError):
            found[path] = file_version(path)
    return found
