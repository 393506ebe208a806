"""Channels to other services: calls go round all replicas, and addresses are resolved again when they change."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc
from msgspec import Struct

from parley.runtime.client_interceptors import ContextChannel, WrappingChannel
from parley.runtime.errors import ConfigurationError
from parley.runtime.loopback import is_loopback_target
from parley.runtime.message_limits import MAX_MESSAGE_BYTES
from parley.runtime.tls import ClientTls

_SCHEMES: Final = ("dns:", "ipv4:", "ipv6:", "unix:", "unix-abstract:", "xds:")
# The caller decides on retries, since it knows what a call did; gRPC retries nothing.
_SERVICE_CONFIG: Final = json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})
_CLOSE_GRACE_SECONDS: Final = 900.0
"""How long calls on a replaced channel may still run: as long as on an aged connection."""

_Multi = Callable[..., Any]


class ChannelSettings(Struct, frozen=True):
    """Settings of a channel."""

    tls: ClientTls | None = None
    """The authorities that the client trusts; None: plaintext."""
    tls_name: str = ""
    """The name that the server's certificate must have; empty: the name that is called."""
    headers: Callable[[], Sequence[tuple[str, str]]] | None = None
    """Returns the metadata that authenticates each call."""
    allow_plaintext: bool = False
    """Whether `headers` may be sent to other machines without TLS."""


Connect = Callable[[str, ChannelSettings], grpc.aio.Channel]
"""Opens a channel to a service by its address, as `channel` does."""


def channel(target: str, settings: ChannelSettings | None = None) -> grpc.aio.Channel:
    """Open a channel to `host:port` (or a target with a scheme, as `dns:///name:port`).

    Calls go round all addresses of the name, carry deadline, trace and labels, and are never repeated by gRPC. Use it
    as `async with`, or close it. Raise ConfigurationError if a key or token could be read on its way to another
    machine.
    """
    chosen = settings or ChannelSettings()
    return ContextChannel(_connect(_target(target), chosen), chosen.headers)


def _connect(target: str, settings: ChannelSettings) -> grpc.aio.Channel:
    options, tls = _options(settings), settings.tls
    if tls is not None:
        return ReloadingChannel(
            tls.contents, lambda: grpc.aio.secure_channel(target, tls.credentials(), options=options)
        )
    if settings.headers is not None and not settings.allow_plaintext and not is_loopback_target(target):
        raise ConfigurationError(
            f"PARLEY_CA: the key or token for {target.removeprefix('dns:///')} could be read on the way; name the file of the "
            "authority that signed the server's certificate (or system), or set PARLEY_TLS=off to send it in the clear"
        )
    return grpc.aio.insecure_channel(target, options=options)


def _target(target: str) -> str:
    return target if target.startswith(_SCHEMES) else f"dns:///{target}"


def _options(settings: ChannelSettings) -> list[tuple[str, int | str]]:
    return [
        ("grpc.service_config", _SERVICE_CONFIG),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),  # services talk to each other directly
        ("grpc.use_local_subchannel_pool", 1),  # one channel's trouble is not another's
        ("grpc.dns_min_time_between_resolutions_ms", 1_000),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 1_000),
        ("grpc.max_reconnect_backoff_ms", 5_000),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.keepalive_time_ms", 20_000),  # without traffic for so long, the other side is pinged
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        *(
            [("grpc.ssl_target_name_override", settings.tls_name)]
            if settings.tls and settings.tls_name
            else []
        ),
    ]


class ReloadingChannel(WrappingChannel):
    """A channel that is opened again after its certificates change; running calls end on the old one."""

    def __init__(self, version: Callable[[], object], make: Callable[[], grpc.aio.Channel]) -> None:
        """Make a channel, and another one as soon as `version` returns something else."""
        self._version = version
        self._make = make
        self._channel_version = version()
        self._channel = make()
        self._closing: dict[asyncio.Task[None], grpc.aio.Channel] = {}

    async def close(self, grace: float | None = None) -> None:
        """Close the channel, and those before it; running calls have `grace` seconds to end."""
        channels = [self._channel, *self._closing.values()]
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*(each.close(grace) for each in channels))

    def wrap(self, kind: str, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method that calls over the channel as it is then."""
        made: tuple[grpc.aio.Channel, _Multi] | None = None

        def call(*request: Any, **options: Any) -> Any:
            nonlocal made
            channel = self.inner
            if made is None or made[0] is not channel:
                made = channel, getattr(channel, kind)(method, *args, **kwargs)
            return made[1](*request, **options)

        return call

    @property
    def inner(self) -> grpc.aio.Channel:
        """The channel with the certificates as they are now."""
        version = self._version()
        if version != self._channel_version:
            task = asyncio.create_task(self._channel.close(_CLOSE_GRACE_SECONDS))
            self._closing[task] = self._channel
            task.add_done_callback(self._closing.pop)
            self._channel_version, self._channel = version, self._make()
        return self._channel
