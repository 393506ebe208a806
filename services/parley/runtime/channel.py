"""Channels to other services: every replica in turn, found again when they change."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import grpc

from parley.runtime.client_interceptors import CallingChannel
from parley.runtime.errors import ConfigurationError
from parley.runtime.loopback import is_loopback_target
from parley.runtime.message_size import MAX_MESSAGE_BYTES
from parley.runtime.renewed_channel import RenewedChannel
from parley.runtime.tls import ClientTls

__all__ = ["ChannelSettings", "channel"]

_SCHEMES: Final = ("dns:", "ipv4:", "ipv6:", "unix:", "unix-abstract:", "xds:")
# Repeating is decided above, where it is known what a call did; gRPC itself repeats nothing.
_SERVICE_CONFIG: Final = json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """What a client allows itself; durations are in seconds."""

    max_message_bytes: int = MAX_MESSAGE_BYTES
    keepalive_seconds: float = 20.0
    """A connection that is silent this long is asked whether it lives, and dropped if it does not say so."""
    keepalive_timeout_seconds: float = 10.0
    max_reconnect_seconds: float = 5.0
    """The longest pause between two attempts to connect."""
    tls: ClientTls | None = None
    """Whom the client trusts; None: it speaks in the clear."""
    tls_name: str = ""
    """The name that the server's certificate must have; empty: the one that it is called by."""
    headers: Callable[[], Sequence[tuple[str, str]]] | None = None
    """Returns what is shown of the caller with each call."""
    in_the_clear: bool = False
    """Whether that is shown to other machines without TLS too."""


def channel(target: str, settings: ChannelSettings | None = None) -> grpc.aio.Channel:
    """Open a channel to `host:port` (or a target with a scheme, as `dns:///name:port`).

    Calls go round all addresses of the name, carry deadline, trace and labels on, and are never
    repeated by gRPC. Use it as `async with`, or close it.

    Raises:
        ConfigurationError: what is shown of the caller could be read on its way to another machine.
    """
    chosen = settings or ChannelSettings()
    return CallingChannel(_connected(_target(target), chosen), chosen.headers)


def _connected(target: str, settings: ChannelSettings) -> grpc.aio.Channel:
    options, tls = _options(settings), settings.tls
    if tls is not None:
        return RenewedChannel(
            tls.contents, lambda: grpc.aio.secure_channel(target, tls.credentials(), options=options)
        )
    if settings.headers is not None and not settings.in_the_clear and not is_loopback_target(target):
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
        ("grpc.max_reconnect_backoff_ms", round(settings.max_reconnect_seconds * 1000)),
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", settings.max_message_bytes),
        ("grpc.keepalive_time_ms", round(settings.keepalive_seconds * 1000)),
        ("grpc.keepalive_timeout_ms", round(settings.keepalive_timeout_seconds * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        *(
            [("grpc.ssl_target_name_override", settings.tls_name)]
            if settings.tls and settings.tls_name
            else []
        ),
    ]
