"""The tools of MCP, described once for a process of tests: every edge has the same, and their schemas take four fifths of its start."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mcp.server.mcpserver.tools import Tool

__all__ = ["described_tools"]


@pytest.fixture(autouse=True, scope="session")
def described_tools() -> Iterator[None]:
    """Let servers that tests start share what describes their tools."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tool, "from_function", _describe_once(Tool.from_function))
        yield


def _describe_once(describe: Callable[..., Tool]) -> Callable[..., Tool]:
    described: dict[object, Tool] = {}

    def describe_function(function: Any, **options: Any) -> Tool:
        """Return the description of the same method of another server, with the function that is called here."""
        method = getattr(function, "__func__", function)
        if method not in described:
            described[method] = describe(function, **options)
        return described[method].model_copy(update={"fn": function})

    return describe_function
