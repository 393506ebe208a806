"""The tools of MCP, described once for a process of tests: every edge has the same, and their schemas take four fifths of its start."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mcp.server.mcpserver.tools import Tool


@pytest.fixture(autouse=True, scope="session")
def described_tools() -> Iterator[None]:
    """Let servers that tests start share what describes their tools."""
    describe = Tool.__dict__["from_function"].__func__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tool, "from_function", classmethod(_describe_once(describe)))
        yield


def _describe_once(describe: Callable[..., Tool]) -> Callable[..., Tool]:
    described: dict[tuple[type[Tool], object], Tool] = {}

    def describe_function(kind: type[Tool], function: Any, **options: Any) -> Tool:
        """Return the description of the same method of another server, with the function that is called here."""
        described_as = kind, getattr(function, "__func__", function)
        if described_as not in described:
            described[described_as] = describe(kind, function, **options)
        return described[described_as].model_copy(update={"fn": function})

    return describe_function
