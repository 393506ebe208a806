"""Files whose content may change while a service runs, such as certificates: read again when they have."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from parley.runtime.errors import ConfigurationError
from parley.runtime.logs import get_logger

__all__ = ["ChangingFiles"]

_LOOK_SECONDS: Final = 1.0

_logger = get_logger(__name__)

Stamp = tuple[tuple[int, int, int], ...]


class ChangingFiles:
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
        self._looked = time.monotonic()
        try:
            self._stamp = self._stamped()
            self._contents = self._read()
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{setting}: {_why(error)}") from None

    def contents(self) -> tuple[bytes, ...]:
        """Return what the files hold, as of a second ago at most. While they cannot be read, what they held last."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            try:
                stamp = self._stamped()
                if stamp != self._stamp:
                    self._contents = self._read()
                    self._stamp = stamp
            except (OSError, ValueError) as error:  # as while they are being replaced
                _logger.warning("a file that changed cannot be used yet", error=_why(error))
        return self._contents

    def _stamped(self) -> Stamp:
        found = [path.stat() for path in self._paths]
        return tuple((each.st_mtime_ns, each.st_ino, each.st_size) for each in found)

    def _read(self) -> tuple[bytes, ...]:
        contents = tuple(path.read_bytes() for path in self._paths)
        self._check(contents)
        return contents


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename} cannot be read: {error.strerror or error}"
    return str(error)
