"""Files that a stranger may have put there: read with a bound, and never a pipe or a device."""

import errno
import os
import stat
from pathlib import Path


def read_start(path: Path, size: int) -> bytes:
    """Return the first `size` bytes of a regular file. Raise OSError, at once if it is a pipe or a device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 (a descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return file.read(size)
