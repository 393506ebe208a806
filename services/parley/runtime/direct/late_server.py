"""A server that starts when it is first called."""

import asyncio

from parley.runtime.direct.exchange import Exchange
from parley.runtime.direct.server import DirectServer


class LateServer:
    """Takes the calls of `DirectChannel`s before there is a server, and passes them on.

    Attributes:
        called: Set by the first call, or by whoever wants the server to start without one.
    """

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self._server: DirectServer | None = None
        self._waiting: list[tuple[str, Exchange, float | None]] = []

    def call(self, method: str, exchange: Exchange, timeout: float | None) -> None:
        """Answer a call, or keep it until there is a server."""
        if self._server is not None:
            self._server.call(method, exchange, timeout)
        else:
            self._waiting.append((method, exchange, timeout))
            self.called.set()

    def start(self, server: DirectServer) -> None:
        """Pass all calls on to this server; the timeouts of those that waited begin now."""
        self._server = server
        for method, exchange, timeout in self._waiting:
            if exchange.status is None:
                server.call(method, exchange, timeout)
        self._waiting.clear()
