"""The commands of docs/guides/http.md and openai-clients.md, as they are written."""

import asyncio
import json
import os
import shutil
import sys

import pytest

from parley.v1 import debate_pb2
from tests.integration.edge.conftest import Edge
from tests.support.guides import find_blocks

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="the guide's commands need curl")


async def run(edge: Edge, command: str, **variables: str) -> str:
    """Run a command of the guide against this edge, and return its output."""
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        command.replace("http://localhost:7400", edge.url),
        env={**os.environ, "TOKEN": "none", **variables},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


async def test_the_commands_of_the_guide_do_what_it_says(edge: Edge) -> None:
    blocks = [block for block in find_blocks("docs/guides/http.md") if "curl" in block.text]
    create, answer, agents, events, report = (block.script for block in blocks if block.language == "console")
    debate = json.loads(await run(edge, create))["debateId"]
    assert json.loads(await run(edge, create))["debateId"] == debate
    listed = json.loads(await run(edge, agents))
    assert {each["id"] for each in listed["agents"]} >= set(listed["defaultTeam"])
    assert [each["name"] for each in listed["routes"]] == ["p/m"]
    followed = await run(edge, events, DEBATE=debate)
    assert followed.startswith("id: 1\nevent: event\ndata: {")
    assert followed.endswith("event: end\ndata: {}\n\n")
    await edge.orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
    assert "<title>One service or several?</title>" in await run(edge, report, DEBATE=debate)
    assert "The answer." in json.loads(await run(edge, answer, DEBATE=debate))["markdown"]


async def test_debates_as_models_do_what_the_guide_says(edge: Edge) -> None:
    blocks = [each for each in find_blocks("docs/guides/openai-clients.md") if each.language]
    models, ask = (each.script for each in blocks if "curl" in each.text)
    assert json.loads(await run(edge, models))["data"][0]["id"] == "panel"
    answer = json.loads(await run(edge, ask))
    assert "The answer." in answer["choices"][0]["message"]["content"]
    (program,) = (each.text for each in blocks if each.language == "python")
    variables = {"OPENAI_BASE_URL": f"{edge.url}/v1", "OPENAI_API_KEY": "none", "PROGRAM": program}
    printed = await run(edge, f'exec {sys.executable} -c "$PROGRAM"', **variables)
    assert "### Round 1 of" in printed
    assert "The answer." in printed
