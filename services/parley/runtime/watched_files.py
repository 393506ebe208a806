"""Files whose content may change while a service runs, such as certificates: read again when they have."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from parley.runtime.errors import ConfigurationError

__all__ = ["FileVersion", "WatchedFiles", "file_version"]

_CHECK_SECONDS: Final = 1.0

# Clients have changing files too, and what makes a service's log lines takes a tenth of a second to import.
_logger = logging.getLogger(__name__)

FileVersion: TypeAlias = tuple[int, int, int]


def file_version(path: Path) -> FileVersion:
    """Return what tells one content of a file from the next; a mounted file changes as a new one behind a link. Raises OSError."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


class WatchedFiles:
    """The contents of some files that belong together; all are small and on a disk of this machine."""

    def __init__(
        self, setting: str, *paths: Path, check: Callable[[tuple[bytes, ...]], None] | None = None
    ) -> None:
        """Read the files that `setting` names. `check` raises ValueError where their contents are of no use.

        Raises:
            ConfigurationError: one cannot be read, or they are of no use.
        """
        self._paths = paths
        self._check = check or (lambda _: None)
        self._checked_at = time.monotonic()
        try:
            self._versions = self._read_versions()
            self._contents = self._read()
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{setting}: {_reason(error)}") from None

    def contents(self) -> tuple[bytes, ...]:
        """Return what the files hold, as of a second ago at most. While they cannot be read, what they held last."""
        now = time.monotonic()
        if now - self._checked_at >= _CHECK_SECONDS:
            self._checked_at = now
            try:
                stamps = self._read_versions()
                if stamps != self._versions:
                    self._contents = self._read()
                    self._versions = stamps
            except (OSError, ValueError) as error:  # as while they are being replaced
                _logger.warning("a file that changed cannot be used yet: %s", _reason(error))
        return self._contents

    def _read_versions(self) -> tuple[FileVersion, ...]:
        return tuple(file_version(path) for path in self._paths)

    def _read(self) -> tuple[bytes, ...]:
        contents = tuple(path.read_bytes() for path in self._paths)
        self._check(contents)
        return contents


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename} cannot be read: {error.strerror or error}"
    return str(error)
