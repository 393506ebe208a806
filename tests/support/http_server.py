"""HTTP servers of tests on this machine."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def serve_app(
    app: web.Application, host: str = "127.0.0.1", context: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve an application while the block runs; yield its port. Requests that are open then are cut off."""
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, 0, ssl_context=context).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
