"""Files that may change while a service runs, such as certificates: they are read again after a change."""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from parley.runtime.errors import ConfigurationError

_CHECK_SECONDS: Final = 1.0

# Clients use this module too, and importing the services' logging takes a tenth of a second.
_logger = logging.getLogger(__name__)

FileVersion: TypeAlias = tuple[int, int, int]


def file_version(path: Path) -> FileVersion:
    """Return the version of a file: its time, size and inode. A mounted file changes as a new inode behind a link. Raise OSError."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


class WatchedFiles:
    """The contents of files that belong together; all are small and on a local disk."""

    def __init__(
        self, files: Mapping[str, Path], check: Callable[[tuple[bytes, ...]], None] | None = None
    ) -> None:
        """Read the files, each under the setting that names it.

        `check` raises ValueError, which names setting and file, if their contents, in this order, cannot be used.
        Raise ConfigurationError if a file cannot be read, or its content cannot be used.
        """
        self._files = dict(files)
        self._check = check or (lambda _: None)
        self._checked_at = time.monotonic()
        try:
            self._versions = self._read_versions()
            self._contents = self._read()
        except (OSError, ValueError) as error:
            raise ConfigurationError(self._reason(error)) from None

    def contents(self) -> tuple[bytes, ...]:
        """Return the files' contents, at most a second old. If they cannot be read, return the last good contents."""
        now = time.monotonic()
        if now - self._checked_at >= _CHECK_SECONDS:
            self._checked_at = now
            try:
                stamps = self._read_versions()
                if stamps != self._versions:
                    self._contents = self._read()
                    self._versions = stamps
            except (OSError, ValueError) as error:  # for example while they are being replaced
                _logger.warning("a file that changed cannot be used yet: %s", self._reason(error))
        return self._contents

    def _read_versions(self) -> tuple[FileVersion, ...]:
        return tuple(file_version(path) for path in self._files.values())

    def _read(self) -> tuple[bytes, ...]:
        contents = tuple(path.read_bytes() for path in self._files.values())
        self._check(contents)
        return contents

    def _reason(self, error: Exception) -> str:
        if not isinstance(error, OSError):
            return str(error)
        settings = [setting for setting, path in self._files.items() if str(path) == str(error.filename)]
        return f"{', '.join(settings)}: {error.filename} cannot be read: {error.strerror or error}"
