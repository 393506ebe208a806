"""The gRPC server of every service: health, reflection, limits, and an orderly stop."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import product
from typing import Final, cast

import grpc
from grpc_health.v1 import health
from msgspec import Struct

from parley.runtime.acts import Acts
from parley.runtime.direct.server import DirectServer
from parley.runtime.draining import Draining
from parley.runtime.errors import ConfigurationError
from parley.runtime.health import Health, ReadyCheck
from parley.runtime.identity.guard import OPEN, Authenticator, Guard
from parley.runtime.logs import get_logger
from parley.runtime.loopback import join_address
from parley.runtime.message_limits import MAX_MESSAGE_BYTES, MAX_PUBLIC_BYTES
from parley.runtime.reflection import add_reflection
from parley.runtime.server_interceptors import Admission, CallInterceptor
from parley.runtime.tasks import stop_task
from parley.runtime.tls import ServerTls

__all__ = [
    "CannotListenError",
    "Draining",
    "RunningServer",
    "ServerSettings",
    "Service",
    "serve",
    "start_server",
]

_NO_COMPRESSION: Final = 1 << grpc.Compression.NoCompression
"""A MiB of traffic unpacks to a GiB. Other answers name `identity` as what the server accepts, as gRPC requires."""
_logger = get_logger(__name__)


@dataclass(frozen=True)
class Service:
    """A service: its full gRPC name (`parley.v1.MemoryService`) and the function that adds it to a server.

    `authenticators` are its own, in addition to those of every service. `on_listening` gets the address just before the first call.
    `admission` may refuse an authenticated tenant's call. `acts` records calls; None: it keeps no audit log.
    `ready` is called every few seconds and raises if the service cannot work.
    """

    name: str
    register: Callable[[grpc.aio.Server], None]
    on_listening: Callable[[str], None] | None = None
    authenticators: tuple[Authenticator, ...] = ()
    admission: Admission | None = None
    acts: Acts | None = None
    ready: ReadyCheck | None = None


class CannotListenError(ConfigurationError):
    """The server cannot listen on its address; `address` is the address, with the reason if known."""

    def __init__(self, where: str, variable: str = "PARLEY_PORT") -> None:
        super().__init__(f"PARLEY_HOST, {variable}: cannot listen on {where}; choose another")
        self.address = where


class ServerSettings(Struct, frozen=True):
    """The address to listen on, and limits of a connection; durations are in seconds."""

    host: str = "127.0.0.1"
    port: int = 0
    grace_seconds: float = 30.0
    """From the stop signal until running calls are cut."""
    health_port: int | None = None
    """A second port for health checks only, without authentication and in plaintext; None: no such port."""
    handshake_seconds: float = 10.0
    """A connection without a gRPC handshake by then is closed."""
    max_connection_idle_seconds: float = 300.0
    """A connection without a call for this long is closed; a channel opens another when it needs one."""
    guard: Guard = OPEN
    """Authenticates callers and checks their roles."""
    tls: ServerTls | None = None
    """The server's certificate; None: plaintext."""


class RunningServer:
    """A server that listens, and answers once it is started; it drains when its `start_server` block is left.

    Attributes:
        direct: Answers calls from this process, as the server answers those that come over its port.
    """

    def __init__(
        self,
        server: grpc.aio.Server,
        checks: Health,
        settings: ServerSettings,
        port: int,
        draining: Draining,
        health_servers: Sequence[grpc.aio.Server],
        direct: DirectServer,
    ) -> None:
        self._server = server
        self._health_servers = health_servers
        self._checks = checks
        self._grace_seconds = settings.grace_seconds
        self._drain_task: asyncio.Task[None] | None = None
        self._health_task = asyncio.create_task(checks.check_forever())
        self.port = port
        self.address = join_address(settings.host, port)
        self.draining = draining
        self.direct = direct

    async def start(self, services: Iterable[Service]) -> None:
        """Begin to answer."""
        await self._checks.start_serving()
        for each in self._health_servers:
            await each.start()
        for service in services:
            if service.on_listening is not None:
                service.on_listening(self.address)
        await self._server.start()

    async def drain(self, *, at_once: asyncio.Event | None = None) -> None:
        """Set health to NOT_SERVING, set `draining`, let running calls end, and stop the server.

        Takes `grace_seconds` at most in all, or ends as soon as `at_once` is set. A second call
        waits for the first one's end.
        """
        if self._drain_task is None:
            self._drain_task = asyncio.create_task(self._drain(at_once or asyncio.Event()))
        await asyncio.shield(self._drain_task)

    async def _drain(self, at_once: asyncio.Event) -> None:
        await self._checks.stop_serving()
        self.draining.set()
        stopping = asyncio.create_task(self._stop(self._grace_seconds))
        hurry = asyncio.create_task(at_once.wait())
        try:
            await asyncio.wait({stopping, hurry}, return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                await self._stop(None)
            await stopping
        finally:
            hurry.cancel()
            await stop_task(self._health_task)
            for each in self._health_servers:
                await each.stop(None)

    async def _stop(self, grace: float | None) -> None:
        await asyncio.gather(self._server.stop(grace), self.direct.stop(grace))


@asynccontextmanager
async def start_server(
    services: Iterable[Service], settings: ServerSettings | None = None, *, draining: Draining | None = None
) -> AsyncIterator[RunningServer]:
    """Serve until the block is left, then drain. `draining` is the one that the servicers got, if any.

    Raise ConfigurationError if the address cannot be used.
    """
    services = tuple(services)
    running = _listen(services, settings or ServerSettings(), draining or Draining())
    try:
        await running.start(services)
        yield running
    finally:
        await running.drain()


async def serve(
    services: Iterable[Service], settings: ServerSettings | None = None, *, draining: Draining | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal stops at once.

    Raise ConfigurationError if the address cannot be used.
    """
    stop, at_once = asyncio.Event(), asyncio.Event()

    def handle_signal() -> None:
        (at_once if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, handle_signal)
    try:
        async with start_server(services, settings, draining=draining) as running:
            _logger.info("serving", address=running.address)
            await stop.wait()
            _logger.info("draining", address=running.address)
            await running.drain(at_once=at_once)
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def _listen(services: Sequence[Service], settings: ServerSettings, draining: Draining) -> RunningServer:
    admissions = {each.name: each.admission for each in services if each.admission is not None}
    acts = {each.name: each.acts for each in services if each.acts is not None}
    interceptor = CallInterceptor(settings.guard, admissions, acts)
    server = grpc.aio.server(interceptors=(interceptor,), options=_options(settings))
    direct = DirectServer(interceptor.wrap)
    servers = server, cast("grpc.aio.Server", direct)  # handlers are added to both in the same way
    names = [service.name for service in services]
    for service, each in product(services, servers):
        service.register(each)
    checks = Health({service.name: service.ready for service in services})
    for each in servers:
        checks.register(each)
    add_reflection((*names, health.SERVICE_NAME), server)
    port = _add_port(server, settings)
    health_servers = _health_server(checks, settings)
    return RunningServer(server, checks, settings, port, draining, health_servers, direct)


def _options(settings: ServerSettings) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", 0),  # else two processes share a port silently
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_concurrent_streams", 1024),  # of one connection; further calls wait at the client
        # A request that is not read yet takes at most the window of its stream, 64 KiB. By its own measurements gRPC would enlarge it.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.compression_enabled_algorithms_bitset", _NO_COMPRESSION),
        ("grpc.server_handshake_timeout_ms", _milliseconds(settings.handshake_seconds)),
        ("grpc.max_connection_idle_ms", _milliseconds(settings.max_connection_idle_seconds)),
        ("grpc.max_connection_age_ms", 600_000),  # so that clients find new replicas
        ("grpc.max_connection_age_grace_ms", 900_000),  # longer than any model call
        # Our clients ping every 20 s, between calls too, and gRPC pings for its own measurements. A process that
        # was blocked finds several at once; counting them would cut off a client that did nothing wrong.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_ping_strikes", 0),
    ]


def _health_server(checks: Health, settings: ServerSettings) -> Sequence[grpc.aio.Server]:
    """Return the server of the health port, if one is set: probes have neither certificates nor keys."""
    if settings.health_port is None:
        return ()
    server = grpc.aio.server(
        options=[
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", MAX_PUBLIC_BYTES),
            ("grpc.compression_enabled_algorithms_bitset", _NO_COMPRESSION),
        ]
    )
    checks.register(server)
    where = join_address(settings.host, settings.health_port)
    try:
        server.add_insecure_port(where)
    except RuntimeError:
        raise CannotListenError(where, "PARLEY_HEALTH_PORT") from None
    return (server,)


def _add_port(server: grpc.aio.Server, settings: ServerSettings) -> int:
    wanted = join_address(settings.host, settings.port)
    if settings.port:
        # gRPC logs pages when it cannot bind; a probe of the port gives one plain reason.
        try:
            _probe(settings.host.strip("[]"), settings.port)
        except OSError as error:
            raise CannotListenError(f"{wanted}: {error.strerror or error}") from None
    try:
        if settings.tls is None:
            return server.add_insecure_port(wanted)
        return server.add_secure_port(wanted, settings.tls.credentials())
    except RuntimeError:
        raise CannotListenError(wanted) from None


def _probe(host: str, port: int) -> None:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


def _milliseconds(seconds: float) -> int:
    return max(round(seconds * 1000), 1)
