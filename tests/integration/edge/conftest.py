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
from openai import AsyncOpenAI

from parley.edge.__main__ import run_edge
from parley.edge.settings import EdgeSettings
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED
from tests.support.described_tools import described_tools
from tests.support.orchestration import WITHIN, Orchestrator, orchestrating, until
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

    async def run_debate(self, **headers: str) -> str:
        """Create a debate, and return its id once it is completed."""
        debate = await self.create(**headers)
        await self.orchestrator.status(debate, DEBATE_STATUS_COMPLETED)
        return debate

    async def wait_for_debate(self) -> str:
        """Return the id of the one debate that there is, as soon as it is there."""

        async def find() -> str:
            _, answer = await self.post("ListDebates", {})
            found = answer.get("debates", [])
            assert len(found) <= 1
            return str(found[0]["id"]) if found else ""

        return str(await until(find, "a debate was created"))

    async def wait_for_two_streams(self, debate: str) -> None:
        """Wait until the caller can open two streams of a debate."""
        url = f"{self.url}/v1/debates/{debate}/events"

        async def are_free() -> bool:
            async with self.session.get(url) as one, self.session.get(url) as two:
                free = (one.status, two.status) == (200, 200)
                one.close()
                two.close()
                return free

        await until(are_free, "both streams can be opened again")


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


@pytest.fixture
async def client(edge: Edge) -> AsyncIterator[AsyncOpenAI]:
    """OpenAI's client of the edge."""
    url = f"{edge.url}/v1"
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=WITHIN) as opened:
        yield opened
