"""The configurations of docs/guides/mcp.md, as they are written: each starts a server that offers the tools."""

import json
import os
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.support.guides import find_blocks
from tests.support.orchestration import Orchestrator
from tests.support.warm_start import write_command

TOOLS: Final = {
    "debate",
    "start_debate",
    "get_debate",
    "list_debates",
    "steer_debate",
    "search_past_debates",
}
BLOCKS: Final = [each for each in find_blocks("docs/guides/mcp.md") if each.language == "json"]


def entries(written: dict[str, Any]) -> list[dict[str, Any]]:
    """The servers of a configuration: VS Code calls them otherwise."""
    return list((written.get("mcpServers") or written["servers"]).values())


def choose_over_http() -> list[Any]:
    """The configurations over HTTP."""
    return [pytest.param(json.loads(each.text), id=each.place) for each in BLOCKS if '"url"' in each.text]


def choose_starts() -> list[Any]:
    """What configurations start, each once however many clients are told of it: a system takes two seconds to start."""
    places: dict[str, list[str]] = {}
    for each in BLOCKS:
        if '"url"' not in each.text:
            (entry,) = entries(json.loads(each.text))
            places.setdefault(json.dumps({"type": "stdio", **entry}), []).append(each.place)
    return [pytest.param(json.loads(entry), id=" ".join(where)) for entry, where in places.items()]


@pytest.mark.parametrize("written", choose_over_http())
async def test_a_configuration_reaches_the_edge_with_a_key(written: dict[str, Any], url: str) -> None:
    (entry,) = entries(written)
    (header,) = entry["headers"].items()
    name, value = header
    scheme, place = value.split(" ")
    assert (name, scheme, place.startswith("${")) == ("Authorization", "Bearer", True)
    if place.startswith("${input:"):
        assert place == f"${{input:{written['inputs'][0]['id']}}}"
    assert entry.get("type", "http") == "http"
    assert entry["url"] == "http://localhost:7400/mcp"
    async with (
        httpx2.AsyncClient(headers={name: f"{scheme} none"}) as sender,
        Client(streamable_http_client(url, http_client=sender)) as client,
    ):
        assert {each.name for each in (await client.list_tools()).tools} == TOOLS
        listed = await client.call_tool("list_debates", {})
        assert listed.structured_content == {"debates": [], "more": False}


@pytest.mark.parametrize("entry", choose_starts())
async def test_a_configuration_starts_a_server_that_offers_the_tools(
    entry: dict[str, Any], orchestrator: Orchestrator, tmp_path: Path
) -> None:
    write_command(tmp_path / "parley")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PATH", os.defpath)])
    mine = {
        **get_default_environment(),
        "PATH": path,
        "HOME": str(tmp_path),
        "PARLEY_STORE": f"sqlite:///{tmp_path / 'own'}",
        "PARLEY_LOCAL_SERVERS": "off",
        "PARLEY_LOCAL_MODEL": "off",
    }
    parameters = StdioServerParameters(
        command=entry["command"],
        args=[each.replace("127.0.0.1:7401", orchestrator.server.address) for each in entry["args"]],
        env={**mine, **entry.get("env", {})},
        cwd=tmp_path,
    )
    assert entry["type"] == "stdio"
    async with Client(stdio_client(parameters)) as client:
        assert {each.name for each in (await client.list_tools()).tools} == TOOLS
        listed = await client.call_tool("list_debates", {})
        assert listed.structured_content == {"debates": [], "more": False}
