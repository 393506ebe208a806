"""Files that only their user can read. The user may share files that they asked for by name."""

import functools
import os
from pathlib import Path
from typing import Final

_PRIVATE: Final = 0o077


@functools.cache
def initial_umask() -> int:
    """Return the umask that this process was started with."""
    present = os.umask(_PRIVATE)
    os.umask(present)
    return present


def set_private_umask() -> None:
    """Set the umask so that files are created with 0600 and folders with 0700, also by libraries. For the entry of a process."""
    os.umask(_PRIVATE | initial_umask())


def make_folder(path: Path) -> None:
    """Create a folder with 0700, and missing parents; an existing one stays as it is. Raise OSError."""
    for each in (*reversed(path.parents), path):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(exist_ok=True)  # raises if the path is no folder


def open_private(path: str, flags: int) -> int:
    """Open a file, created with 0600 if it is missing: the `opener` of `open`."""
    return os.open(path, flags, 0o600)
