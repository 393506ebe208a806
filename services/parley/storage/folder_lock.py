"""The lock on an embedded data folder: one process owns it exclusively, or several share it, each for a service of its own.

The file names the processes that hold the lock, and the address of an exclusive owner. The kernel releases the
lock when its process ends, so a file that a killed process left is no obstacle.
"""

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from parley.runtime.private_files import make_folder

_FILE = "parley.lock"
_ATTEMPTS = 10
_PAUSE = 0.02  # seconds; a reader of the address holds the lock for an instant
_MAX_BYTES = 65536


class FolderLock:
    """The right to use a data folder, until it is released or this process ends."""

    def __init__(self, descriptor: int, *, alone: bool) -> None:
        self._descriptor = descriptor
        self._exclusive = alone

    @classmethod
    def acquire(cls, folder: Path, name: str = _FILE) -> Self | None:
        """Lock the folder for this process only, creating it if it is missing; return None if another process holds it.

        Raise OSError if the folder cannot be created or written to.
        """
        descriptor = _open_file(folder, name)
        for _ in range(_ATTEMPTS):
            if _try_lock(descriptor, fcntl.LOCK_EX):
                lock = cls(descriptor, alone=True)
                lock.withdraw()  # that of a process that was killed
                return lock
            time.sleep(_PAUSE)
        os.close(descriptor)
        return None

    @classmethod
    def share(cls, folder: Path, service: str) -> Self | None:
        """Lock the folder together with other services' processes; return None if a process holds it exclusively.

        Raises:
            OSError: as with `acquire`.
        """
        descriptor = _open_file(folder, _FILE)
        for _ in range(_ATTEMPTS):
            if _try_lock(descriptor, fcntl.LOCK_EX):  # no other process holds it: the file is stale
                os.ftruncate(descriptor, 0)
            if _try_lock(descriptor, fcntl.LOCK_SH):
                lock = cls(descriptor, alone=False)
                lock._add({"pid": os.getpid(), "service": service})
                return lock
            time.sleep(_PAUSE)
        os.close(descriptor)
        return None

    def publish(self, address: str) -> None:
        """Write this process's address, for `read_address`."""
        self._write({"pid": os.getpid(), "address": address})

    def withdraw(self) -> None:
        """Take the address back: whoever looks for it waits for the folder."""
        self._write({"pid": os.getpid()})

    def release(self) -> None:
        """Release the folder. It may be called again."""
        if self._descriptor >= 0:
            if self._exclusive:
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
        with _ignore_full_disk():
            os.pwrite(self._descriptor, text, 0)
            os.ftruncate(self._descriptor, len(text))

    def _add(self, content: dict[str, object]) -> None:
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, os.O_APPEND)
        with _ignore_full_disk():
            os.write(self._descriptor, json.dumps(content).encode() + b"\n")


def read_address(folder: Path) -> str | None:
    """Return the address of the exclusive owner, or None if there is none or it has not published one yet."""
    for content in _read_entries(folder):
        address = content.get("address")
        # That of a killed owner stands there until a new one writes, and another reader may hold the lock for an instant.
        return address if isinstance(address, str) and _is_running(content.get("pid")) else None
    return None


def is_shared(folder: Path) -> bool:
    """Return whether processes of single services hold the folder."""
    return any("service" in each for each in _read_entries(folder))


def describe_holders(folder: Path, name: str = _FILE) -> str:
    """Return a description of the processes that hold the folder, as far as the file tells."""
    found = [each for each in _read_entries(folder, name) if _is_running(each.get("pid"))]
    return " and ".join(_describe(each) for each in found) or "another process"


def _describe(content: dict[str, Any]) -> str:
    process = f"process {content['pid']}"
    return f"parley serve {content['service']} ({process})" if "service" in content else process


def _read_entries(folder: Path, name: str = _FILE) -> Iterator[dict[str, Any]]:
    """Yield the entries of the processes that hold the folder; nothing if no process holds it."""
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if _try_lock(descriptor, fcntl.LOCK_EX):  # no process holds it: the file is stale
            return
        lines = os.pread(descriptor, _MAX_BYTES, 0).splitlines()
    finally:
        os.close(descriptor)
    for line in lines:
        with suppress(ValueError):  # partly written
            content = json.loads(line)
            if isinstance(content, dict):
                yield content


def _is_running(pid: object) -> bool:
    try:
        os.kill(pid if isinstance(pid, int) and pid > 0 else os.getpid(), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return isinstance(pid, int)


def _open_file(folder: Path, name: str) -> int:
    make_folder(folder)
    return os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _ignore_full_disk() -> Iterator[None]:
    """Ignore a full disk: the lock holds without an entry in the file, and stored data can still be read."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
