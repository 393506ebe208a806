"""A web server on an address of its own, so that localhost can stay out of reach of what is tested."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network

from aiohttp import web

from parley.orchestrator.outgoing.reach import Reach
from parley.orchestrator.research.fetcher import Fetcher
from tests.support.http_server import serve_app

WEB_NETWORK = ip_network("127.0.0.2/32")


@asynccontextmanager
async def web_server(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], *, method: str = "GET"
) -> AsyncIterator[str]:
    """A server of pages, or of what is asked by another method; yields its URL."""
    app = web.Application()
    app.router.add_route(method, "/{path:.*}", handler)
    async with serve_app(app, "127.0.0.2") as port:
        yield f"http://127.0.0.2:{port}/"


def fetcher_of(url: str, *, seconds: float = 10, max_bytes: int = 100_000) -> Fetcher:
    """A fetcher that may reach the server at `url`."""
    port = int(url.rstrip("/").rpartition(":")[2])
    return Fetcher(Reach((WEB_NETWORK,), frozenset({80, 443, port})), seconds, max_bytes)
