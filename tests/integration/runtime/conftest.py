"""The ways to call a server: over its port, and from its own process without a socket, also before it has started."""

import asyncio
from collections.abc import Callable

import grpc
import pytest

from parley.runtime.channel import ChannelSettings, channel
from parley.runtime.direct.channel import direct_channel, identify_service
from parley.runtime.direct.late_server import LateServer
from parley.runtime.identity.service_tokens import ServiceSigner
from parley.runtime.server import RunningServer

CALLER = "debater"
"""The service that calls."""
SECRET = b"a secret that services share, long enough"
Reach = Callable[[RunningServer], grpc.aio.Channel]


def _reach_late(server: RunningServer) -> grpc.aio.Channel:
    late = LateServer()
    asyncio.get_running_loop().call_later(0.01, late.start, server.direct)
    return direct_channel(late, identify_service(CALLER))


@pytest.fixture(params=["grpc", "direct", "late"])
def reach(request: pytest.FixtureRequest) -> Reach:
    """Opens a channel to a server, in one way and in the others."""
    if request.param == "late":
        return _reach_late
    if request.param == "direct":
        return lambda server: direct_channel(server.direct, identify_service(CALLER))
    signed = ChannelSettings(headers=ServiceSigner(CALLER, lambda: (SECRET,)).headers)
    return lambda server: channel(server.address, signed)
