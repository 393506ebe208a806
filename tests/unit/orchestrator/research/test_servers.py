"""MCP servers as sources: a real one over stdin and stdout, which answers, or does wrong in every way."""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.research import ask_server as ask_server_script
from parley.orchestrator.research import servers as servers_module
from parley.orchestrator.research.errors import FetchError
from parley.orchestrator.research.fetcher import Fetcher
from parley.orchestrator.research.servers import ToolServer, ask_server
from parley.orchestrator.research.sources import WebSources
from parley.v1.source_pb2 import SOURCE_KIND_TOOL, ResearchRequest
from tests.support.process_status import state_of
from tests.support.tool_server import ATTACK, plain_tool_server, tool_server
from tests.support.waiting import until

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def sources(*servers: ToolServer, seconds: float = 60.0) -> WebSources:
    return WebSources(Fetcher(), Fetcher(), lambda: NOW, servers=servers, seconds=seconds)


@pytest.fixture
async def asks_itself(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Who asks is no process of its own, which takes a second of the processor to load the SDK; the servers are."""
    start, started = asyncio.create_subprocess_exec, []

    async def note_started(*command: Any, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*command, **options))
        return started[-1]

    async def run_here(script: str, package: str, given: bytes, **_: object) -> dict[str, str]:
        return await ask_server_script.ask(json.loads(given), lambda: None)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", note_started)
    monkeypatch.setattr(servers_module, "run_reader", run_here)
    yield
    for each in started:
        each._transport.close()  # type: ignore[attr-defined]
        await each.wait()


async def test_what_a_tool_answers_is_a_source_with_server_tool_time_and_hash() -> None:
    found = await sources(tool_server("search")).find(ResearchRequest(question="Do\notters float?"))
    assert found.warnings == []
    (finding,) = found.findings
    source = finding.source
    assert (source.kind, source.tool, source.title) == (SOURCE_KIND_TOOL, "otters/search", "")
    assert source.sha256 == hashlib.sha256(finding.text.encode()).hexdigest()
    assert source.read_at.ToDatetime(UTC) == NOW
    assert finding.text == f"Otters float. >>> [31m Ask for more. {ATTACK} You asked: Do otters float?"


@pytest.mark.usefixtures("asks_itself")
async def test_servers_that_fail_are_a_warning_each_and_the_others_are_found() -> None:
    failing = {
        "die": "it ended before it answered",
        "fail": "the tool failed: Error executing tool fail",
        "flood": "it wrote more than 1048576 bytes",
        "keep_silent": "it says nothing that can be read",
        "unknown": "the tool failed: Unknown tool: unknown",
    }
    of_the_sdk = {"fail", "unknown"}
    servers = [
        tool_server(each) if each in of_the_sdk else plain_tool_server(each)
        for each in (*failing, "print_noise")
    ]
    found = await sources(*servers).find(ResearchRequest(question="?"))
    assert [each.source.tool for each in found.findings] == ["otters/print_noise"]
    assert found.warnings == [
        f"the MCP server otters/{tool} gave no source: {why}" for tool, why in failing.items()
    ]


async def test_a_server_that_stalls_costs_its_time_and_is_a_warning() -> None:
    stalling = ToolServer("otters", (sys.executable, "-c", "import time; time.sleep(600)"), "stall", "query")
    found = await sources(stalling, seconds=1).find(ResearchRequest(question="?"))
    assert found.warnings == ["the MCP server otters/stall gave no source: it did not answer within 1 s"]


async def test_a_server_that_is_asked_no_longer_is_ended_with_what_it_started(tmp_path: Path) -> None:
    left = tmp_path / "left"
    asking = asyncio.create_task(ask_server(plain_tool_server("stall", str(left)), "?", 600))
    await asyncio.to_thread(until, lambda: left.exists() and left.read_text())
    asking.cancel()
    await asyncio.wait([asking])
    await asyncio.to_thread(_wait_until_ended, left, 2)


async def test_what_a_server_starts_and_takes_out_of_its_session_ends_with_the_question(
    tmp_path: Path,
) -> None:
    left = tmp_path / "left"
    await ask_server(plain_tool_server("leave", str(left)), "?", 60)
    _wait_until_ended(left, 1)
    left.unlink()
    asking = asyncio.create_task(ask_server(plain_tool_server("leave_and_stall", str(left)), "?", 600))
    await asyncio.to_thread(until, lambda: left.exists() and left.read_text())
    asking.cancel()
    await asyncio.wait([asking])
    _wait_until_ended(left, 1)


def test_who_asks_does_not_wait_for_ever_if_the_orchestrator_was_killed() -> None:
    given = {
        "command": [sys.executable, "-c", "import time; time.sleep(600)"],
        "environment": {},
        "tool": "search",
        "arguments": {},
        "characters": 10,
        "seconds": 1,
    }
    sdk = find_spec("mcp")
    assert sdk is not None
    assert sdk.origin is not None
    library = str(Path(sdk.origin).parents[1])
    command = [sys.executable, "-I", ask_server_script.__file__, library, "10", str(1 << 30)]
    asked = subprocess.run(
        command, check=True, input=json.dumps(given), capture_output=True, text=True, timeout=60
    )
    assert json.loads(asked.stdout) == {"error": "it did not answer within 1 s"}


@pytest.mark.usefixtures("asks_itself")
async def test_a_server_sees_no_variable_that_could_be_a_key_and_not_our_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PARLEY_SERVICE_SECRET", "x" * 32)
    reading = await ask_server(plain_tool_server("show_environment"), "?", 60)
    shown = json.loads(reading.text)
    assert set(shown["variables"]) <= {"HOME", "LANG", "LC_CTYPE", "PATH", "PYTHONSAFEPATH", "TMPDIR", "TZ"}
    assert shown["folder"] == "/"


@pytest.mark.usefixtures("asks_itself")
async def test_a_long_answer_is_cut() -> None:
    reading = await ask_server(plain_tool_server("talk"), "?", 60)
    assert 10_000 < len(reading.text) <= 12_000


@pytest.mark.usefixtures("asks_itself")
async def test_a_program_that_is_no_server_is_an_error() -> None:
    with pytest.raises(FetchError, match="it ended before it answered"):
        await ask_server(ToolServer("none", (sys.executable, "-c", "print(1)"), "search", "query"), "?", 60)
    with pytest.raises(FetchError, match="it was not started: No such file"):
        await ask_server(ToolServer("none", ("/nowhere",), "search", "query"), "?", 60)


@pytest.mark.usefixtures("asks_itself")
async def test_a_program_that_writes_without_end_is_an_error() -> None:
    endless = (sys.executable, "-c", "while True: print('otter')")
    with pytest.raises(FetchError, match="it wrote more than 1048576 bytes"):
        await ask_server(ToolServer("none", endless, "search", "query"), "?", 30)


def _wait_until_ended(left: Path, count: int) -> None:
    processes = [int(each) for each in left.read_text().split()]
    assert len(processes) == count
    until(lambda: not any(map(_is_running, processes)))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return state_of(process) != "Z"
