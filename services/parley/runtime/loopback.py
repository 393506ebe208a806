"""This machine, as it reaches itself."""

import errno
import socket
from functools import cache

__all__ = ["loopback"]


@cache
def loopback() -> str:
    """Return 127.0.0.1, or ::1 where this machine has no IPv4."""
    try:
        with socket.socket(socket.AF_INET) as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as error:
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return "::1"
        raise
    return "127.0.0.1"
