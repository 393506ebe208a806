"""A TCP proxy before a MongoDB server that loses the answer to a command: its outcome is then unknown."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class CuttingProxy:
    """Passes everything on; see `lose_answers`."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._command = b""
        self._left = 0
        self.lost = 0
        self.address = ""

    def lose_answers(self, command: str, times: int) -> None:
        """Pass the next `times` such commands on to the server, then cut the connection instead of answering."""
        self._command = b"\x02" + command.encode() + b"\0"  # as BSON names a command's first field
        self._left = times

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection(*self._target)
        answers = asyncio.create_task(self._copy(to_reader, writer))
        try:
            while data := await reader.read(2**20):
                to_writer.write(data)
                if self._left and self._command in data:
                    self._left -= 1
                    self.lost += 1
                    answers.cancel()
                    await asyncio.wait([answers])
                    await to_reader.read(1)  # the server has done it
                    return
        except ConnectionError:
            pass
        finally:
            answers.cancel()
            await asyncio.wait([answers])
            to_writer.close()
            writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(2**20):
                writer.write(data)
        except ConnectionError:
            pass


@asynccontextmanager
async def run_cutting_proxy(url: str) -> AsyncIterator[tuple[CuttingProxy, str]]:
    """Yield a proxy before the server of the URL, and the URL that leads through it."""
    parts = urlsplit(url)
    proxy = CuttingProxy(parts.hostname or "", parts.port or 27017)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    credentials, at, _ = parts.netloc.rpartition("@")
    query = f"{parts.query}&directConnection=true".strip("&")
    async with server:
        yield proxy, parts._replace(netloc=f"{credentials}{at}{host}:{port}", query=query).geturl()
