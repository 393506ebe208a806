"""A connection that can be cut, between an edge and its orchestrator."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Relay:
    """Passes bytes on to an address, until its connections are cut; new ones may come then."""

    def __init__(self, target: str) -> None:
        self._host, _, self._port = target.rpartition(":")
        self._writers: set[asyncio.StreamWriter] = set()
        self.address = ""
        self.connections = 0

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what comes over one connection, in both directions."""
        self.connections += 1
        there, here = await asyncio.open_connection(self._host, int(self._port))
        self._writers |= {writer, here}
        await asyncio.gather(_copy(reader, here), _copy(there, writer))

    def cut(self) -> None:
        """Cut all connections."""
        for each in self._writers:
            each.transport.abort()
        self._writers.clear()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while given := await reader.read(65536):
            writer.write(given)
            await writer.drain()
    writer.transport.abort()


@asynccontextmanager
async def run_relay(target: str) -> AsyncIterator[Relay]:
    """Run a relay to an address."""
    relay = Relay(target)
    server = await asyncio.start_server(relay.pass_on, "127.0.0.1", 0)
    relay.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield relay
    finally:
        relay.cut()
        server.close()
        await server.wait_closed()
