"""An orchestrator before a scripted gateway, and MCP clients of it."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.support.orchestration import WITHIN, Orchestrator, orchestrating
from tests.support.scripted_gateway import ScriptedGateway

Connect = Callable[..., AbstractAsyncContextManager[Client]]
"""Starts `parley mcp`, and yields a client of it; its arguments are those of the client."""


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ScriptedGateway()


@pytest.fixture
async def orchestrator(gateway: ScriptedGateway, tmp_path: Path) -> AsyncIterator[Orchestrator]:
    async with gateway.served() as server, orchestrating(tmp_path, server) as served:
        yield served


@pytest.fixture
def stdio(orchestrator: Orchestrator, tmp_path: Path) -> Connect:
    @asynccontextmanager
    async def connect(**options: Any) -> AsyncIterator[Client]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "parley.cli", "mcp", "--server", orchestrator.server.address],
            env=kept,
            cwd=tmp_path,
        )
        with (tmp_path / "stderr.txt").open("a") as errors:
            transport = stdio_client(parameters, errlog=errors)
            async with Client(transport, read_timeout_seconds=WITHIN, **options) as client:
                yield client

    return connect
