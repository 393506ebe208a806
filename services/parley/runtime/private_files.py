"""What a process of Parley makes is read by its user alone; what that user asked for by name is theirs to share."""

import functools
import os
from pathlib import Path
from typing import Final

__all__ = ["initial_umask", "make_folder", "open_private", "set_private_umask"]

_PRIVATE: Final = 0o077


@functools.cache
def initial_umask() -> int:
    """Return the umask that this process was started with."""
    present = os.umask(_PRIVATE)
    os.umask(present)
    return present


def set_private_umask() -> None:
    """From now on, make files 0600 and folders 0700, also those that libraries make. For the entry of a process."""
    os.umask(_PRIVATE | initial_umask())


def make_folder(path: Path) -> None:
    """Make a folder of 0700, and those above it that are missing; one that is there stays as it is. Raise OSError."""
    for each in (*reversed(path.parents), path):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(exist_ok=True)  # for what is there, and is no folder


def open_private(path: str, flags: int) -> int:
    """Open a file, made 0600 where it is missing: the `opener` of `open`."""
    return os.open(path, flags, 0o600)
