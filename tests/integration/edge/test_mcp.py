"""MCP over HTTP at the edge: its bounds are those of all that the edge answers."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from parley.edge.__main__ import run_edge
from parley.edge.settings import EdgeSettings
from parley.v1 import debate_pb2
from parley.v1.orchestrator_pb2 import ListDebatesRequest
from tests.integration.edge.conftest import Edge
from tests.support.orchestration import WITHIN, Orchestrator
from tests.support.scripted_gateway import ScriptedGateway

VERSION = "2026-07-28"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"edge_streams_per_caller": 1}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """The body of a request that calls a tool."""
    meta = {
        "progressToken": 1,  # else what takes long answers its first byte after 15 s
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def headers(tool: str, **more: str) -> dict[str, str]:
    return {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
        **more,
    }


async def post(edge: Edge, tool: str = "list_debates", **more: str) -> tuple[int, str]:
    async with edge.session.post(f"{edge.url}/mcp", json=call(tool), headers=headers(tool, **more)) as answer:
        return answer.status, await answer.text()


async def test_names_and_origins_are_checked_as_everywhere(edge: Edge) -> None:
    status, text = await post(edge)
    assert status == 200, text
    assert json.loads(text)["result"]["structuredContent"] == {"debates": [], "more": False}
    assert (await post(edge, Host="evil.example"))[0] == 400
    assert (await post(edge, Origin="https://evil.example"))[0] == 403
    assert (await post(edge, Origin=edge.url))[0] == 200


async def test_there_is_nothing_to_get_and_no_session_to_delete(edge: Edge) -> None:
    for method in ("GET", "DELETE"):
        async with edge.session.request(method, f"{edge.url}/mcp") as answer:
            assert answer.status == 405


async def test_what_is_no_request_is_refused(edge: Edge) -> None:
    for body, status in ((b"{", 400), (b" " * (4 * 1024 * 1024 + 1), 413)):
        async with edge.session.post(f"{edge.url}/mcp", data=body, headers=headers("debate")) as answer:
            assert answer.status == status


async def test_a_call_counts_as_a_stream_of_its_caller_while_it_lasts(
    edge: Edge, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("*")
    body = call("debate", question="Is water wet?")
    async with edge.session.post(
        f"{edge.url}/mcp", json=body, headers=headers("debate", Authorization="Bearer one")
    ) as first:
        assert first.status == 200
        status, text = await post(edge, Authorization="Bearer one")
        assert (status, json.loads(text)["reason"]) == (429, "TOO_MANY_STREAMS")
        assert (await post(edge, Authorization="Bearer two"))[0] == 200
    hold.release()


async def test_a_call_that_ends_since_the_edge_stops_cancels_no_debate(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/propose/*")
    body = call("debate", question="Is water wet?", cancel_with_call=True)
    settings = EdgeSettings(port=0, orchestrator=orchestrator.server.address, grace_seconds=0.1)
    async with aiohttp.ClientSession() as session:
        async with run_edge(settings) as address:
            first = await session.post(f"http://{address}/mcp", json=body, headers=headers("debate"))
            async with asyncio.timeout(WITHIN):
                await hold.reached.wait()
        first.close()
    (found,) = (await orchestrator.stub.ListDebates(ListDebatesRequest())).debates
    hold.release()
    await orchestrator.status(found.id, debate_pb2.DEBATE_STATUS_COMPLETED)
