"""Errors of the orchestrator, as the tools and resources of MCP return them."""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError

from parley.runtime.errors import ParleyError, is_transport
from parley.runtime.printable import printable_line


@contextmanager
def translate_tool_errors() -> Iterator[None]:
    """Raise ToolError, whose text the model reads, in place of ParleyError."""
    try:
        yield
    except ParleyError as error:
        raise ToolError(_to_text(error)) from None


@contextmanager
def translate_resource_errors() -> Iterator[None]:
    """Raise ResourceError in place of ParleyError."""
    try:
        yield
    except ParleyError as error:
        kind = ResourceNotFoundError if error.code == grpc.StatusCode.NOT_FOUND else ResourceError
        raise kind(_to_text(error)) from None


def _to_text(error: ParleyError) -> str:
    if is_transport(error) and not error.reason:
        return f"the orchestrator does not answer; try again ({printable_line(error.message)})"
    return printable_line(error.message)
