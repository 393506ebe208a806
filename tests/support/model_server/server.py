"""The model server: a real HTTP server on loopback that speaks the OpenAI API."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from parley.runtime.loopback import loopback
from tests.support.model_server.control import HANDLING, control, show_ledger
from tests.support.model_server.handling import Handling
from tests.support.model_server.latency import Latency
from tests.support.model_server.ledger import Ledger
from tests.support.model_server.rules import Answer, Rule, RuleBook
from tests.support.model_server.settings import Switches

_LARGEST_REQUEST = 256 * 1024 * 1024
# aiohttp takes 0 for "wait without end".
_AT_ONCE = 0.001


class ModelServer:
    """A model server in this process.

    `async with ModelServer(latency=0.2, rules=[...]) as server:` gives it an address, `server.base_url`, for as long
    as the block lasts. Beyond `answer` (for every text call no rule answers), `latency` (or plain seconds), `rules`,
    `ledger_file` and `keeps_calls`, keywords are the fields of `Switches`.
    """

    def __init__(
        self,
        *,
        rules: Iterable[Rule] = (),
        answer: Answer | None = None,
        latency: Latency | float = 0.0,
        ledger_file: Path | None = None,
        port: int = 0,
        keeps_calls: bool = True,
        **switches: Any,
    ) -> None:
        self.ledger = Ledger(ledger_file, keeps_calls=keeps_calls)
        self.port = port
        self._handling = Handling(
            switches=Switches(**switches),
            rules=rules,
            answer=answer,
            latency=_latency(latency),
            ledger=self.ledger,
        )
        self._runner: web.AppRunner | None = None

    @property
    def base_url(self) -> str:
        """What the openai client takes as its base URL; it stays the same over a stop and a start."""
        if self.port == 0:
            raise RuntimeError("the model server has no address yet: start it first")
        host = loopback()
        return f"http://[{host}]:{self.port}/v1" if ":" in host else f"http://{host}:{self.port}/v1"

    @property
    def switches(self) -> Switches:
        """What the server has and lacks now."""
        return self._handling.switches

    @property
    def latency(self) -> Latency:
        """The latency of calls whose rule has none of its own."""
        return self._handling.latency

    @latency.setter
    def latency(self, latency: Latency | float) -> None:
        self._handling.latency = _latency(latency)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in order; to set them anew is to forget what the old ones have counted."""
        return self._handling.rule_book.rules

    @rules.setter
    def rules(self, rules: Iterable[Rule]) -> None:
        self._handling.rule_book = RuleBook(rules)

    def switch(self, **switches: Any) -> None:
        """Change some switches, by the names of the fields of `Switches`."""
        self._handling.switches = replace(self._handling.switches, **switches)

    def reset(self) -> None:
        """Forget every call so far: the ledger in memory, the counters, what the rules have counted."""
        self._handling.reset()

    async def start(self) -> None:
        """Listen on the port (0: any free one, kept from then on)."""
        app = web.Application(client_max_size=_LARGEST_REQUEST)
        app[HANDLING] = self._handling
        app.router.add_post("/control", control)
        app.router.add_get("/ledger", show_ledger)
        app.router.add_route("*", "/{path:.*}", self._handling.handle)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=_AT_ONCE, handle_signals=False
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, loopback(), self.port, backlog=1024)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Cut every connection and stop listening; the ledger stays readable, and the server may start again."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.stop()
        finally:
            self.ledger.close()


def _latency(latency: Latency | float) -> Latency:
    return latency if isinstance(latency, Latency) else Latency(median=latency)
