"""How the tools reach the orchestrator."""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.mcpserver import Context

from parley.client import ParleyClient

OpenClient = Callable[[Context[Any, Any]], Awaitable[ParleyClient]]
"""Returns the client of the orchestrator that acts for the caller of a request. Raises ParleyError if there is none."""
