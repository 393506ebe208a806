"""The HTTP server of the edge, inside a running event loop."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Final, Literal

import uvicorn
from starlette.types import ASGIApp

from parley.edge.bounds import HEADER_BYTES
from parley.edge.observation import Observation
from parley.edge.settings import EdgeSettings
from parley.runtime.comma_lists import split_list
from parley.runtime.loopback import join_address
from parley.runtime.server import CannotListenError

_CONNECTIONS: Final = 2048
_KEEP_ALIVE_SECONDS: Final = 75

PortVariable = Literal["PARLEY_PORT", "PARLEY_HEALTH_PORT"]
"""What names the port, for an error."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process, which may run other services too."""
        yield


@contextlib.asynccontextmanager
async def serve_http(
    app: ASGIApp, settings: EdgeSettings, port: PortVariable = "PARLEY_PORT"
) -> AsyncIterator[str]:
    """Serve the application while the block runs; yield its address. Open requests then have the grace seconds to end.

    Raise CannotListenError if the address is taken or is none of this machine's, ConfigurationError if a certificate
    cannot be used.
    """
    server = _Server(_configure(app, settings))
    listening = _listen(settings.host, settings.port, port)
    serving = asyncio.create_task(server.serve([listening]))
    try:
        while not (server.started or serving.done()):  # noqa: ASYNC110 (uvicorn notifies no one)
            await asyncio.sleep(0.01)
        yield join_address(settings.host, listening.getsockname()[1])
    finally:
        server.should_exit = True
        await serving


def _configure(app: ASGIApp, settings: EdgeSettings) -> uvicorn.Config:
    proxies = split_list(settings.edge_trusted_proxies)
    tls = settings.server_tls()
    return uvicorn.Config(
        Observation(app),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies or None,
        h11_max_incomplete_event_size=HEADER_BYTES,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=round(settings.grace_seconds),
        ssl_context_factory=(lambda *_: tls.ssl_context()) if tls is not None else None,
    )


def _listen(host: str, port: int, variable: PortVariable) -> socket.socket:
    bare = host.strip("[]")
    try:
        family = socket.AF_INET6 if ":" in bare else socket.AF_INET
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((bare, port))
        listening.set_inheritable(False)
    except OSError as error:
        raise CannotListenError(f"{join_address(host, port)} ({error.strerror})", variable) from None
    return listening
