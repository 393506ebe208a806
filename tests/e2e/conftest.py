"""What several tests of processes stand on."""

import fcntl
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import model_server
from tests.support.command import Command


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """What a test starts ends with it; what a module shares runs on."""
    shared = len(Command.started)
    yield
    Command.kill_all(after=shared)


@pytest.fixture(scope="module")
def models() -> Iterator[str]:
    """Where a model server without rules listens, for one module."""
    with model_server() as url:
        yield url


@pytest.fixture(scope="module")
def fixed_ports() -> Iterator[None]:
    """The ports that `parley up` and the edge listen on are free, and no other module's; a test is skipped where they are not free."""
    with Path(tempfile.gettempdir(), "parley-fixed-ports.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for port in range(7400, 7406):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    pytest.skip(f"port {port} is in use on this machine")
        yield
