"""An orchestrator before a scripted gateway, and MCP clients of it: over stdio, and over HTTP by an edge."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult

from parley.edge.__main__ import run_edge
from parley.edge.settings import EdgeSettings
from parley.v1.orchestrator_pb2 import ListDebatesRequest
from tests.support.described_tools import described_tools
from tests.support.orchestration import WITHIN, Orchestrator, orchestrating
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.warm_start import IMPORTED_BY_A_CLIENT, list_command

__all__ = ["Connect", "described_tools", "find_debate", "structured", "text_of"]

Connect = Callable[..., AbstractAsyncContextManager[Client]]
"""Yields a client of a server; its arguments are those of the client."""


def text_of(result: CallToolResult) -> str:
    """What the client's model reads."""
    return "".join(getattr(each, "text", "") for each in result.content)


def structured(result: CallToolResult) -> dict[str, Any]:
    """The result as data, of a call that went well."""
    assert not result.is_error, text_of(result)
    found: dict[str, Any] = result.structured_content
    return found


async def find_debate(orchestrator: Orchestrator) -> str:
    """Return the id of the only debate."""
    (found,) = (await orchestrator.stub.ListDebates(ListDebatesRequest())).debates
    return str(found.id)


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ScriptedGateway()


@pytest.fixture
async def orchestrator(gateway: ScriptedGateway, tmp_path: Path) -> AsyncIterator[Orchestrator]:
    async with (
        gateway.served() as server,
        orchestrating(tmp_path, server) as served,
    ):
        yield served


@pytest.fixture
def stdio(orchestrator: Orchestrator, tmp_path: Path) -> Connect:
    """Clients that start `parley mcp`: a fork of a process that has imported it, or `new_python`."""

    @asynccontextmanager
    async def connect(*, new_python: bool = False, **options: Any) -> AsyncIterator[Client]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
        arguments = ["mcp", "--server", orchestrator.server.address]
        command, *given = (
            [sys.executable, "-m", "parley.cli", *arguments]
            if new_python
            else list_command(*arguments, imports=IMPORTED_BY_A_CLIENT)
        )
        parameters = StdioServerParameters(command=command, args=given, env=kept, cwd=tmp_path)
        with (tmp_path / "stderr.txt").open("a") as errors:
            transport = stdio_client(parameters, errlog=errors)
            async with Client(transport, read_timeout_seconds=WITHIN, **options) as client:
                yield client

    return connect


@pytest.fixture
async def url(orchestrator: Orchestrator) -> AsyncIterator[str]:
    """The address of MCP at an edge before the orchestrator."""
    settings = EdgeSettings(port=0, orchestrator=orchestrator.server.address, grace_seconds=1)
    async with run_edge(settings) as address:
        yield f"http://{address}/mcp"


@pytest.fixture
def http(url: str) -> Connect:
    """Clients of the edge."""

    @asynccontextmanager
    async def connect(**options: Any) -> AsyncIterator[Client]:
        async with Client(url, read_timeout_seconds=WITHIN, **options) as client:
            yield client

    return connect


@pytest.fixture(params=["stdio", "http"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """Clients of each transport, one after the other."""
    chosen: Connect = request.getfixturevalue(request.param)
    return chosen
