"""The two ways to call a server: over its port, and from its own process without a socket."""

from collections.abc import Callable

import grpc
import pytest

from parley.runtime.channel import ChannelSettings, channel
from parley.runtime.direct.channel import direct_channel, identify_service
from parley.runtime.identity.service_tokens import ServiceSigner
from parley.runtime.server import RunningServer

CALLER = "debater"
"""The service that calls."""
SECRET = b"a secret that services share, long enough"
Reach = Callable[[RunningServer], grpc.aio.Channel]


@pytest.fixture(params=["grpc", "direct"])
def reach(request: pytest.FixtureRequest) -> Reach:
    """Opens a channel to a server, in one way and in the other."""
    if request.param == "direct":
        return lambda server: direct_channel(server.direct, identify_service(CALLER))
    signed = ChannelSettings(headers=ServiceSigner(CALLER, lambda: (SECRET,)).headers)
    return lambda server: channel(server.address, signed)
