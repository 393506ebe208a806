"""TCP proxies that can be cut, slowed and held: one before each service, and one between each service and the store."""

import asyncio
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

T = TypeVar("T")

_PIECE = 2**16
_WITHIN = 10.0
_LINGERING = 3.0


@dataclass(eq=False)
class _Proxy:
    """Passes bytes on between whoever connects and one address.

    One that lingers lets the target finish what it was asked before the connection went: the stand-in for MongoDB keeps
    its lock for ever if it loses a client in the middle of a write.
    """

    target: tuple[str, int]
    lingers: bool
    refusing: bool = False
    delay: float = 0.0
    going: asyncio.Event = field(default_factory=asyncio.Event)
    server: asyncio.Server | None = None
    _open: dict[asyncio.StreamWriter, asyncio.StreamWriter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.going.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            to_reader, to_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()  # nobody is there
            return
        self._open[writer] = to_writer
        answers = asyncio.create_task(self._answer(to_reader, writer))
        await self._copy(reader, to_writer, slowly=True)
        writer.transport.abort()
        if self.lingers:
            await asyncio.wait([answers], timeout=_LINGERING)
        to_writer.transport.abort()
        await answers
        del self._open[writer]

    def cut(self) -> None:
        """Cut every connection, whatever is on its way."""
        for writer, to_writer in self._open.items():
            writer.transport.abort()
            if not self.lingers:
                to_writer.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, slowly: bool = False
    ) -> None:
        """Pass bytes on until the reader ends; what nobody is there for any more is dropped."""
        try:
            while data := await reader.read(_PIECE):
                if slowly and self.delay:
                    await asyncio.sleep(self.delay)
                await self.going.wait()
                if not writer.is_closing():
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._copy(reader, writer)
        writer.transport.abort()  # the target went first


class Proxies:
    """All proxies of a system, on an event loop in a thread of its own; use it as `with`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._proxies: dict[str, _Proxy] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_WITHIN)
        self._loop.close()

    def add(self, name: str, port: int, target: tuple[str, int], *, lingers: bool = False) -> None:
        """Listen on a loopback port and lead on to the target."""
        self._do(self._listen(name, port, _Proxy(target, lingers)))

    def cut(self, name: str, *, refuse: bool = False) -> None:
        """Cut the connections of a proxy and, with `refuse`, take no new ones until `mend`."""
        self._do(self._cut(name, refuse=refuse))

    def mend(self, name: str) -> None:
        """Take new connections again."""
        self._proxies[name].refusing = False

    def slow(self, name: str, seconds: float) -> None:
        """Let what clients ask come so much later; with 0, at once again."""
        self._proxies[name].delay = seconds

    def hold(self, name: str) -> None:
        """Pass nothing on, and take connections as before, until `let_go`."""
        self._loop.call_soon_threadsafe(self._proxies[name].going.clear)

    def let_go(self, name: str) -> None:
        """Pass on what was held, also for clients that are gone."""
        self._loop.call_soon_threadsafe(self._proxies[name].going.set)

    async def _listen(self, name: str, port: int, proxy: _Proxy) -> None:
        proxy.server = await asyncio.start_server(proxy.serve, "127.0.0.1", port)
        self._proxies[name] = proxy

    async def _cut(self, name: str, *, refuse: bool) -> None:
        proxy = self._proxies[name]
        proxy.refusing = refuse
        proxy.cut()

    async def _close(self) -> None:
        for proxy in self._proxies.values():
            if proxy.server is not None:
                proxy.server.close()
            proxy.going.set()
            proxy.cut()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        if serving:
            await asyncio.wait(serving, timeout=_WITHIN / 2)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_WITHIN)
