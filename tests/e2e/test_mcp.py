"""`parley mcp` runs the whole system itself, with the team of its folder's file, and the next one finds what it left."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client

from tests.support.warm_start import list_command

QUESTION = "Should this service keep a cache of its own?"
TEAM = """agents:
  - role: architect
    name: Ada
  - role: security
    name: Bo
debate:
  rounds: 1
"""


@asynccontextmanager
async def client_of(folder: Path, models: str) -> AsyncIterator[Client]:
    variables = {
        **get_default_environment(),
        "HOME": str(folder),
        "OPENAI_BASE_URL": models,
        "PARLEY_MODEL": "test",
        "PARLEY_STORE": f"sqlite:///{folder / 'data'}",
        "PARLEY_LOCAL_SERVERS": "off",
    }
    command, *arguments = list_command("mcp")
    parameters = StdioServerParameters(command=command, args=arguments, env=variables, cwd=folder)
    async with Client(stdio_client(parameters), read_timeout_seconds=120) as client:
        yield client


def read_data(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content
    return found


async def test_a_debate_of_the_folders_team_is_found_by_the_next_command(tmp_path: Path, models: str) -> None:
    (tmp_path / "parley.yaml").write_text(TEAM, encoding="utf-8")
    async with client_of(tmp_path, models) as client:
        held = read_data(await client.call_tool("debate", {"question": QUESTION}))
        unknown = await client.call_tool("debate", {"question": QUESTION, "agents": ["a b"]})
    assert held["status"] == "completed"
    assert held["answer"]
    assert unknown.is_error
    assert "'a b' is neither an id nor a role" in str(unknown.content)
    async with client_of(tmp_path, models) as client:
        found = read_data(await client.call_tool("get_debate", {"debate_id": held["debate_id"]}))
        (report,) = (await client.read_resource(held["report"])).contents
    assert (found["answer"], found["question"]) == (held["answer"], QUESTION)
    text = getattr(report, "text", "")
    assert all(name in text for name in ("Ada", "Bo"))


async def test_a_command_whose_system_was_anothers_runs_its_own_when_that_ends(
    tmp_path: Path, models: str
) -> None:
    (tmp_path / "parley.yaml").write_text(TEAM, encoding="utf-8")
    runs, ended = asyncio.Event(), asyncio.Event()

    async def run_first() -> None:
        async with client_of(tmp_path, models):
            runs.set()
            await ended.wait()

    first = asyncio.create_task(run_first())
    await runs.wait()
    async with client_of(tmp_path, models) as client:
        assert read_data(await client.call_tool("list_debates", {}))["debates"] == []
        ended.set()
        await first
        held = read_data(await client.call_tool("debate", {"question": QUESTION}))
    assert held["status"] == "completed"
