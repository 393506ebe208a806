"""The command that lists agents and routes."""

from pathlib import Path
from typing import Final

from parley.cli.commands.connection import connect, report_shared_system
from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.input.config_file import find_config
from parley.cli.printing import print_text
from parley.cli.terminal.agent_tables import agent_rows, route_rows
from parley.cli.terminal.message_json import json_value, to_json
from parley.cli.terminal.table import print_table
from parley.client import GatewayClient

__all__ = ["list_agents"]

_PATIENCE: Final = 5.0


async def list_agents(server: str | None, config_path: Path | None, *, as_json: bool) -> None:
    """Print agents and routes."""
    if server is not None and config_path is not None:
        raise CommandError(
            "--config is read by the server itself; leave it out with --server", INVALID_ARGUMENTS
        )
    found = find_config(config_path) if server is None else None
    path = Path(found.places.name) if found is not None else None
    async with (
        connect(server, path, purpose="agents", what="gateway") as link,
        GatewayClient(link.gateway or link.orchestrator, patience=_PATIENCE) as gateway,
    ):
        report_shared_system(link)
        listed, routes = await gateway.list_agents(), await gateway.list_routes()
    if as_json:
        print_text(to_json({"agents": json_value(listed), "routes": json_value(routes)}))
        return
    print_table(agent_rows(listed, routes))
    print_text("\n")
    print_table(route_rows(routes))
