"""An orchestrator before a scripted gateway."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.client import ParleyClient
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.peers import services
from parley.runtime.server import RunningServer
from tests.integration.orchestrator.around import Around
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import (
    Backstage,
    Orchestrator,
    Replica,
    backstage,
    orchestrating,
)
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture
def short_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let orchestrators wait half a second for a service that is away: for tests that are about what comes then."""
    monkeypatch.setattr(services, "_RESTART_SECONDS", 0.5)


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ScriptedGateway()


@pytest.fixture
async def gateway_server(gateway: ScriptedGateway) -> AsyncIterator[RunningServer]:
    async with gateway.served() as server:
        yield server


@pytest.fixture
def formats() -> Formats:
    """Those that orchestrators know; a module that needs others has a fixture of its own."""
    return all_formats()


@pytest.fixture
def over_sockets() -> bool:
    """Whether gRPC carries what an orchestrator is asked and asks; a module that is about that has a fixture of its own."""
    return False


@pytest.fixture
def around(tmp_path: Path) -> Around:
    """The other services that an orchestrator calls, on real ports."""
    return Around(tmp_path)


@pytest.fixture
async def client(around: Around, gateway_server: RunningServer) -> AsyncIterator[ParleyClient]:
    """A client of an orchestrator among them, which asks nothing twice."""
    async with (
        around.orchestrating(gateway_server) as orchestrator,
        ParleyClient(orchestrator.server.address, patience=0) as parley,
    ):
        yield parley


@pytest.fixture
async def orchestrator(
    gateway_server: RunningServer, tmp_path: Path, formats: Formats, *, over_sockets: bool
) -> AsyncIterator[Orchestrator]:
    async with orchestrating(tmp_path, gateway_server, formats=formats, over_sockets=over_sockets) as served:
        yield served


@pytest.fixture
async def stage(tmp_path: Path, formats: Formats) -> AsyncIterator[Backstage]:
    """Replicas before one scripted gateway and one store; tests start them."""
    async with backstage(tmp_path / "stage", formats=formats) as behind:
        yield behind


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def replica(stage: Backstage, clock: ManualClock) -> AsyncIterator[Replica]:
    """A replica whose time tests move."""
    async with stage.replica(clock=clock) as started:
        yield started
