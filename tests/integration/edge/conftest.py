"""An edge before an orchestrator before a scripted gateway, and what a program reaches it with."""

import json
import struct
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from parley.edge.__main__ import run_edge
from parley.edge.settings import EdgeSettings
from tests.support.described_tools import described_tools
from tests.support.orchestration import WITHIN, Orchestrator, orchestrating
from tests.support.scripted_gateway import ScriptedGateway

__all__ = ["SERVICE", "Edge", "described_tools", "envelopes", "open_edge"]

SERVICE = "/parley.v1.OrchestratorService"


@dataclass
class Edge:
    """An edge, as a program sees it."""

    session: aiohttp.ClientSession
    url: str
    orchestrator: Orchestrator

    async def post(self, method: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
        """Call an RPC with JSON; return the status and the answer."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.post(f"{self.url}{SERVICE}/{method}", json=body, headers=given) as answer:
            return answer.status, await answer.json()

    async def create(self, **headers: str) -> str:
        """Create a debate and return its id."""
        body = {"spec": {"question": "Is water wet?", "panel": {"rounds": 1}, "historyLimit": 0}}
        status, answer = await self.post(
            "CreateDebate", body, **{"Idempotency_Key": uuid.uuid4().hex, **headers}
        )
        assert status == 200, answer
        return str(answer["debateId"])


def envelopes(content: bytes) -> list[tuple[int, dict[str, Any]]]:
    """Return the messages of a stream by the Connect protocol, with their flags."""
    found, at = [], 0
    while at < len(content):
        flags, size = struct.unpack(">BI", content[at : at + 5])
        found.append((flags, json.loads(content[at + 5 : at + 5 + size])))
        at += 5 + size
    return found


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ScriptedGateway()


@pytest.fixture
def orchestrator_settings() -> dict[str, Any]:
    """The orchestrator's settings; a module that needs others has a fixture of its own."""
    return {}


@pytest.fixture
async def orchestrator(
    gateway: ScriptedGateway, tmp_path: Path, orchestrator_settings: dict[str, Any]
) -> AsyncIterator[Orchestrator]:
    async with gateway.served() as server, orchestrating(tmp_path, server, **orchestrator_settings) as served:
        yield served


@pytest.fixture
def settings() -> dict[str, Any]:
    """The edge's settings; a module that needs others has a fixture of its own."""
    return {}


@asynccontextmanager
async def open_edge(orchestrator: Orchestrator, settings: dict[str, Any]) -> AsyncIterator[Edge]:
    """Run an edge before an orchestrator."""
    chosen = EdgeSettings(port=0, orchestrator=orchestrator.server.address, grace_seconds=1, **settings)
    timeout = aiohttp.ClientTimeout(total=WITHIN)
    async with run_edge(chosen) as address, aiohttp.ClientSession(timeout=timeout) as session:
        yield Edge(session, f"http://{address}", orchestrator)


@pytest.fixture
async def edge(orchestrator: Orchestrator, settings: dict[str, Any]) -> AsyncIterator[Edge]:
    async with open_edge(orchestrator, settings) as opened:
        yield opened
