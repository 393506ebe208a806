"""The command that offers debates to an MCP client. Nothing but MCP is written to stdout."""

import asyncio
import sys
from pathlib import Path

from parley.cli.commands.connection import Connection, connect, open_client, report_shared_system
from parley.cli.errors import CommandError
from parley.cli.input.agents import select_agents
from parley.cli.input.config_file import find_config
from parley.cli.input.refusals import check_format_keys
from parley.cli.input.spec import build_spec
from parley.cli.person import is_terminal
from parley.cli.printing import say
from parley.cli.translate_errors import translate_errors
from parley.client import DebateSpec, ParleyClient
from parley.config.file import ConfigFile
from parley.mcp.server import create_server
from parley.mcp.specification import Wish
from parley.runtime.entry import tune_gc_and_threads
from parley.runtime.errors import invalid_argument
from parley.runtime.unreachable import explain_unconnected


async def serve_mcp(server: str | None, config_path: Path | None) -> None:
    """Serve until stdin ends. Raise CommandError."""
    if sys.stdin is None or sys.stdin.closed:
        raise CommandError("stdin is closed; an MCP client starts this command and writes there")
    tune_gc_and_threads()  # it runs for days, also where it starts no system, which would do that
    found = find_config(config_path)
    for each in found.warnings if found is not None else ():
        say(f"warning: {each}")
    system = _System(server, Path(found.places.name) if found is not None else None)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(system.keep())
        await system.find_client()
        if is_terminal(sys.stdin):
            say(
                "Waiting for an MCP client on stdin; the guide mcp.md says how clients start this. Ctrl-C stops."
            )
        mcp = create_server(lambda _: system.find_client(), lambda wish: _create_spec(wish, found))
        await mcp.run_stdio_async()
        keeping.cancel()


class _System:
    """The system that is asked: this process's own, or another's as long as that runs."""

    def __init__(self, server: str | None, config_path: Path | None) -> None:
        self._server = server
        self._config_path = config_path
        self._link: Connection | None = None
        self._parley: ParleyClient | None = None
        self._is_there = asyncio.Event()
        self._is_lost = asyncio.Event()

    async def keep(self) -> None:
        """Connect, and connect again whenever the system is lost. Raise CommandError."""
        while True:
            async with (
                connect(self._server, self._config_path, adopt=True) as link,
                open_client(link) as parley,
            ):
                report_shared_system(link)
                self._link, self._parley = link, parley
                self._is_lost.clear()
                self._is_there.set()
                await self._is_lost.wait()

    async def find_client(self) -> ParleyClient:
        """Return a client of the system. If it was another command's and that has ended, there is another one first."""
        if (
            self._link is not None
            and self._link.shared
            and await explain_unconnected(self._link.orchestrator)
        ):
            self._is_there.clear()
            self._is_lost.set()
        await self._is_there.wait()
        assert self._parley is not None
        return self._parley


def _create_spec(wish: Wish, found: ConfigFile | None) -> DebateSpec:
    """Return the specification as `parley debate` makes it of the configuration file. Raise ParleyError."""
    try:
        with translate_errors():
            agents = select_agents(found, ",".join(wish.agents) or None)
            check_format_keys(found, wish.format or None)
            effort = {"effort": wish.effort} if wish.effort else {}
            return build_spec(
                wish.question, found, agents, wish.format or None, None, None, clarify=None, of_format=effort
            )
    except CommandError as error:
        raise invalid_argument((), message=str(error)) from None
