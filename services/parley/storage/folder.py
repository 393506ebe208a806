"""The lock on an embedded data folder: one process owns it, a second one finds the first's address in it.

The kernel lets go of the lock when its process ends, however it ends, so a file left by a killed one is no obstacle.
"""

import fcntl
import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

_FILE = "parley.lock"
_ATTEMPTS = 10
_PAUSE = 0.02  # seconds; `read_address` holds the lock for an instant


class FolderLock:
    """The right to use a data folder, held until released or until this process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, folder: Path) -> Self | None:
        """Lock the folder, making it where it is missing; return None where another process holds it.

        Raises:
            OSError: the folder cannot be made or written to.
        """
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for _ in range(_ATTEMPTS):
            if _lock(descriptor, fcntl.LOCK_EX):
                lock = cls(descriptor)
                lock._write({"pid": os.getpid()})
                return lock
            time.sleep(_PAUSE)
        os.close(descriptor)
        return None

    def publish(self, address: str) -> None:
        """Say where this process answers, for `read_address`."""
        self._write({"pid": os.getpid(), "address": address})

    def release(self) -> None:
        """Let go of the folder. May be called again."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _write(self, content: dict[str, object]) -> None:
        text = json.dumps(content).encode() + b"\n"
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))


def read_address(folder: Path) -> str | None:
    """Return where the process that holds the folder answers; None where none holds it or it has not said yet."""
    try:
        descriptor = os.open(folder / _FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if _lock(descriptor, fcntl.LOCK_SH):  # nobody holds it: what the file says is stale
            return None
        content = json.loads(os.pread(descriptor, 65536, 0))
    except ValueError:  # half written
        return None
    finally:
        os.close(descriptor)
    address = content.get("address") if isinstance(content, dict) else None
    return address if isinstance(address, str) else None


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
