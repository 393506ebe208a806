"""One client of an orchestrator, for whoever asks an MCP server."""

from typing import Any

from mcp.server.mcpserver import Context

from parley.client import ParleyClient
from parley.mcp.access import OpenClient


def act_by(parley: ParleyClient) -> OpenClient:
    """Return what opens this client for every request."""

    async def open_client(_: Context[Any, Any]) -> ParleyClient:
        return parley

    return open_client
