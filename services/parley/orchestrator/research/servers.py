"""MCP servers that the operator names: each is started for one question, asked by one of its tools, and ended."""

import json
import os
from typing import Final

from msgspec import Struct

from parley.orchestrator.research.errors import FetchError
from parley.orchestrator.research.parsing import SHOWN_CHARACTERS, Reading, clean_text
from parley.orchestrator.research.reader_process import run_reader

_CPU_SECONDS: Final = 10
"""Of the process that asks; the server itself has the time of a source."""
_MAX_QUESTION: Final = 2000
_VARIABLES: Final = ("HOME", "LANG", "PATH", "TMPDIR", "TZ")
"""What a server sees of our variables: none that could be a key."""


class ToolServer(Struct, frozen=True):
    """An MCP server that speaks over its stdin and stdout.

    Attributes:
        name: What it is called in lists of sources.
        command: The program and its arguments.
        tool: The tool that is asked.
        argument: The argument of the tool that takes the question.
    """

    name: str
    command: tuple[str, ...]
    tool: str
    argument: str

    @property
    def place(self) -> str:
        """Where its answers are from, as SERVER/TOOL."""
        return f"{self.name}/{self.tool}"


async def ask_server(server: ToolServer, question: str, seconds: float) -> Reading:
    """Return what a server answers to a question, at most `SHOWN_CHARACTERS` characters. It is started for that, and killed after it.

    Raises:
        FetchError: it did not answer within so many seconds, failed, wrote too much, or says nothing.
    """
    given = {
        "command": server.command,
        "environment": {
            **{name: os.environ[name] for name in _VARIABLES if name in os.environ},
            "PYTHONSAFEPATH": "1",
        },
        "tool": server.tool,
        "arguments": {server.argument: " ".join(question.split())[:_MAX_QUESTION]},
        "characters": SHOWN_CHARACTERS,
        "seconds": seconds,
    }
    found = await run_reader(
        "ask_server.py",
        "mcp",
        json.dumps(given).encode(),
        cpu_seconds=_CPU_SECONDS,
        seconds=seconds,
        missing="what asks MCP servers is not installed; it comes with the extra `research`",
        late=f"it did not answer within {seconds:g} s",
        unreadable="its answer could not be read",
    )
    if "error" in found:
        raise FetchError(clean_text(found["error"]))
    text = clean_text(str(found.get("text", ""))).strip()
    if not text:
        raise FetchError("it says nothing that can be read")
    return Reading("", text)
