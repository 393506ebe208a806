"""Ports for processes that are started later, or again."""

import random
import socket
from collections.abc import Iterator

_PORTS = range(12_000, 31_000)
"""Below what the kernel gives to outgoing connections, so that a port stays ours while its process is dead."""
_TRIES = 200
"""To draw all ports takes as long as to start a service."""


def free_ports() -> Iterator[int]:
    """Ports of this machine where nothing listens now, each another one."""
    for port in random.SystemRandom().sample(_PORTS, _TRIES):
        if is_free(port):
            yield port
    raise AssertionError("no port is free")


def is_free(port: int) -> bool:
    """Tell whether nothing listens at a port of this machine now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
