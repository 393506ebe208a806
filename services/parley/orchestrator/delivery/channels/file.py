"""A file of the orchestrator's machine, below the folder that the operator allows: each delivery is one line of JSON."""

import asyncio
import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from parley.orchestrator.delivery.message import DeliveryError, Message

_WRITING: Final = ThreadPoolExecutor(8, thread_name_prefix="hook-files")
"""Threads of their own: a disk that does not answer holds one for longer than a try may take, and nothing else may wait for it."""
_MAX_PARTS: Final = 10
_MAX_PART_BYTES: Final = 200
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileChannel(Struct, frozen=True):
    """Adds lines to a file. Each tenant has a folder of its own, so that no tenant writes into a file of another.

    Attributes:
        folder: What the operator allows. It has to be there, so that nothing is written where a volume is not mounted.
        tenant: The tenant, whose name is that of its folder.
        path: Below it. `is_path` holds for it.
    """

    folder: Path
    tenant: str
    path: str

    async def send(self, message: Message) -> None:
        """Add a message, and return once it is on disk. Raise DeliveryError if it may not be."""
        line = message.body.replace(b"\n", b" ") + b"\n"  # in JSON a line ends between values alone
        parts = (self.tenant, *self.path.split("/"))
        try:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(_WRITING, _append_line, self.folder, parts, line)
        except OSError as error:
            why = error.strerror or "it is no file"
            raise DeliveryError(f"the file could not be written: {why}") from None


def is_path(path: str) -> bool:
    """Return whether a path is one below a folder, and stays there."""
    parts = path.split("/")
    return len(parts) <= _MAX_PARTS and all(map(_is_name, parts))


def _is_name(part: str) -> bool:
    return (
        part not in {"", ".", ".."}
        and part.isprintable()
        and "\\" not in part
        and len(part.encode("utf-8", "replace")) <= _MAX_PART_BYTES
    )


def _append_line(folder: Path, parts: tuple[str, ...], line: bytes) -> None:
    """Add a line whole: what a full disk took half of is taken back. Raise OSError; a link on the way is one."""
    with ExitStack() as stack:
        at = _open(stack, folder, _FOLDER)
        for each in parts[:-1]:
            with suppress(FileExistsError):
                os.mkdir(each, 0o700, dir_fd=at)
                os.fsync(at)
            at = _open(stack, each, _FOLDER | os.O_NOFOLLOW, at)
        file = _open(stack, parts[-1], _FILE, at)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError
        fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":  # a process died while it wrote
            line = b"\n" + line
        try:
            _write(file, line)
            os.fsync(file)
        except OSError:
            os.ftruncate(file, size)
            raise
        if not size:
            os.fsync(at)


def _open(stack: ExitStack, path: str | Path, flags: int, folder: int | None = None) -> int:
    opened = os.open(path, flags, 0o600, dir_fd=folder)
    stack.callback(os.close, opened)
    return opened


def _write(file: int, line: bytes) -> None:
    while line:
        line = line[os.write(file, line) :]
