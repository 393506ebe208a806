"""The two ways to call a server: over its port, and from its own process without a socket."""

from collections.abc import Callable

import grpc
import pytest

from parley.runtime.channel import channel
from parley.runtime.direct.channel import direct_channel
from parley.runtime.server import RunningServer

Reach = Callable[[RunningServer], grpc.aio.Channel]


@pytest.fixture(params=["grpc", "direct"])
def reach(request: pytest.FixtureRequest) -> Reach:
    """Opens a channel to a server, in one way and in the other."""
    if request.param == "direct":
        return lambda server: direct_channel(server.direct, "test")
    return lambda server: channel(server.address)
