"""An orchestrator over real gRPC before a scripted gateway."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.runtime.server import RunningServer
from tests.support.orchestration import Orchestrator, orchestrating
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ScriptedGateway()


@pytest.fixture
async def gateway_server(gateway: ScriptedGateway) -> AsyncIterator[RunningServer]:
    async with gateway.served() as server:
        yield server


@pytest.fixture
async def orchestrator(gateway_server: RunningServer, tmp_path: Path) -> AsyncIterator[Orchestrator]:
    async with orchestrating(tmp_path, gateway_server) as served:
        yield served
