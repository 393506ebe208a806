"""The services that a process calls: whether each can be reached, as log lines for whoever runs it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from msgspec import Struct

from parley.runtime.channel import ChannelSettings, channel
from parley.runtime.clock import Clock, SystemClock
from parley.runtime.logs import get_logger
from parley.runtime.tasks import background_task
from parley.runtime.unreachable import explain_unreachable

_LOOK_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 10.0
"""Services may start in any order, and pods are replaced: only what lasts longer is said."""
_REPEAT_SECONDS: Final = 600.0
_CHECK_SECONDS: Final = 5.0
_CONNECTED: Final = (grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.IDLE)

_logger = get_logger(__name__)


class _Peer(Struct):
    setting: str
    address: str
    channel: grpc.aio.Channel
    tell_at: float | None = None
    """When it will be said that it is away; None while there is a connection."""
    told: bool = False
    is_identified: bool = False
    """Whether it was asked, since there is a connection, which service it is."""

    @property
    def service(self) -> str:
        """The service that is meant, by its name in the contract."""
        return f"parley.v1.{self.setting.removeprefix('PARLEY_').title()}Service"


@asynccontextmanager
async def watch_peers(
    addresses: Mapping[str, str], settings: ChannelSettings, clock: Clock | None = None
) -> AsyncIterator[None]:
    """Keep a connection to each address while the block runs; `addresses` are by the settings that name them.

    A log line says when there has been no connection for ten seconds, and why; another one when there is one again. One
    also says if another service answers at an address.
    """
    time = clock or SystemClock()
    async with AsyncExitStack() as stack:
        peers = [
            _Peer(setting, address, await stack.enter_async_context(channel(address, settings)))
            for setting, address in addresses.items()
        ]
        await stack.enter_async_context(
            background_task("watching the other services", _watch(peers, settings, time))
        )
        yield


async def _watch(peers: list[_Peer], settings: ChannelSettings, clock: Clock) -> None:
    while True:
        for each in peers:
            await _look(each, settings, clock)
        await clock.sleep(_LOOK_SECONDS)


async def _look(peer: _Peer, settings: ChannelSettings, clock: Clock) -> None:
    state = peer.channel.get_state(try_to_connect=True)
    if state in _CONNECTED:
        if peer.told:
            _logger.info("a service is reached again", setting=peer.setting, address=peer.address)
        peer.tell_at, peer.told = None, False
        if state is grpc.ChannelConnectivity.READY and not peer.is_identified:
            peer.is_identified = True
            await _identify(peer)
        return
    peer.is_identified = False
    now = clock.monotonic()
    if peer.tell_at is None:
        peer.tell_at = now + _PATIENCE_SECONDS
    elif now >= peer.tell_at:
        reason = await _explain(peer, settings)
        peer.tell_at, peer.told = now + _REPEAT_SECONDS, True
        _logger.warning(
            "a service is not reached", setting=peer.setting, address=peer.address, reason=reason or "unknown"
        )


async def _identify(peer: _Peer) -> None:
    stub = health_pb2_grpc.HealthStub(peer.channel)
    request = health_pb2.HealthCheckRequest(service=peer.service)
    try:
        await stub.Check(request, timeout=_CHECK_SECONDS)  # type: ignore[attr-defined]
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.NOT_FOUND:
            _logger.warning(
                "another service answers", setting=peer.setting, address=peer.address, expected=peer.service
            )


async def _explain(peer: _Peer, settings: ChannelSettings) -> str:
    """Return why there is no connection. Empty if that cannot be found out: what only logs must not end the service."""
    try:
        return await explain_unreachable(peer.address, settings.tls, settings.tls_name)
    except Exception:
        _logger.exception("why a service is not reached cannot be found out", address=peer.address)
        return ""
