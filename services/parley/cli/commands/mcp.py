"""The command that offers debates to an MCP client. Nothing but MCP is written to stdout."""

import sys
from pathlib import Path

from parley.cli.commands.connection import connect, report_shared_system
from parley.cli.errors import CommandError
from parley.cli.input.agents import select_agents
from parley.cli.input.config_file import find_config
from parley.cli.input.refusals import check_format_keys
from parley.cli.input.spec import build_spec
from parley.cli.person import is_terminal
from parley.cli.printing import say
from parley.cli.translate_errors import translate_errors
from parley.client import DebateSpec, ParleyClient
from parley.config import ConfigFile
from parley.mcp.server import create_server
from parley.mcp.specification import Wish
from parley.runtime.errors import invalid_argument


async def serve_mcp(server: str | None, config_path: Path | None) -> None:
    """Serve until stdin ends. Raise CommandError."""
    if sys.stdin is None or sys.stdin.closed:
        raise CommandError("stdin is closed; an MCP client starts this command and writes there")
    found = find_config(config_path)
    for each in found.warnings if found is not None else ():
        say(f"warning: {each}")
    path = Path(found.places.name) if found is not None else None
    async with connect(server, path, adopt=True) as link, ParleyClient(link.orchestrator) as parley:
        report_shared_system(link)
        if is_terminal(sys.stdin):
            say(
                "Waiting for an MCP client on stdin; the guide mcp.md says how clients start this. Ctrl-C stops."
            )
        await create_server(lambda _: parley, lambda wish: _create_spec(wish, found)).run_stdio_async()


def _create_spec(wish: Wish, found: ConfigFile | None) -> DebateSpec:
    """Return the specification as `parley debate` makes it of the configuration file. Raise ParleyError."""
    try:
        with translate_errors():
            agents = select_agents(found, ",".join(wish.agents) or None)
            check_format_keys(found, wish.format or None)
            return build_spec(wish.question, found, agents, wish.format or None, None, None, clarify=None)
    except CommandError as error:
        raise invalid_argument((), message=str(error)) from None
