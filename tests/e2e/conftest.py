"""What several tests of processes stand on."""

import fcntl
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def fixed_ports() -> Iterator[None]:
    """The ports that `parley up` listens on are free, and no other module's; a test is skipped where they are not free."""
    with Path(tempfile.gettempdir(), "parley-fixed-ports.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for port in range(7401, 7406):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    pytest.skip(f"port {port} is in use on this machine")
        yield
