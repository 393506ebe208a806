"""What several tests of processes stand on."""

import socket

import pytest


@pytest.fixture(scope="module")
def fixed_ports() -> None:
    """The ports that `parley up` listens on are free; a test is skipped where they are not."""
    for port in range(7401, 7406):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                pytest.skip(f"port {port} is in use on this machine")
