"""Reports and decision documents as resources."""

from typing import Any, Final

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from parley.mcp.access import OpenClient
from parley.mcp.errors import translate_resource_errors
from parley.runtime.printable import printable

DOCUMENT_CHARACTERS: Final = 1_000_000
"""Of a document; `parley report` has longer ones whole."""
_MARKDOWN: Final = "text/markdown"


def add_resources(server: MCPServer[Any], open_client: OpenClient) -> None:
    """Add the resources to the server."""

    async def read_report(debate_id: str, context: Context[Any, Any]) -> str:
        """Return the report of a debate, finished or not."""
        with translate_resource_errors():
            return _cut_document(await (await open_client(context)).get_report(debate_id))

    async def read_decision(debate_id: str, context: Context[Any, Any]) -> str:
        """Return the decision document of a completed moderated debate."""
        with translate_resource_errors():
            return _cut_document((await (await open_client(context)).get_decision(debate_id)).markdown)

    for name, read in (("report", read_report), ("decision", read_decision)):
        uri = f"parley://debates/{{debate_id}}/{name}"
        server.resource(uri, name=name, description=read.__doc__, mime_type=_MARKDOWN)(read)


def _cut_document(text: str) -> str:
    shown = printable(text)
    left_out = len(shown) - DOCUMENT_CHARACTERS
    if left_out <= 0:
        return shown
    return f"{shown[:DOCUMENT_CHARACTERS]}\n\n…{left_out:,} more characters: `parley report` has them.\n"
