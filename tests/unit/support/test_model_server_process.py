import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.model_server import Outcome, read_ledger

ROOT = Path(__file__).parents[3]
ASK = {"model": "small", "input": "why"}


@asynccontextmanager
async def run_server(*options: str) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.model_server",
        *options,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            address = (await process.stdout.readline()).decode().strip()
        yield address, process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_it_runs_as_a_process_is_changed_while_it_runs_and_its_ledger_outlives_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "ledger.jsonl"
    faults = tmp_path / "faults.json"
    faults.write_text(json.dumps([{"match": {"call": 1}, "fault": {"kind": "error", "status": 503}}]))
    async with (
        run_server("--port", "0", "--latency-ms", "20", "--ledger", str(file), "--faults", str(faults)) as (
            url,
            process,
        ),
        aiohttp.ClientSession() as http,
    ):
        assert (await _post(http, f"{url}/responses", ASK))[0] == 503
        assert (await _post(http, f"{url}/responses", ASK))[0] == 200
        root = url.removesuffix("/v1")
        change = {"rules": [{"answer": {"yes": 1}}], "latency": {"median": 0}, "responses": False}
        assert await _post(http, f"{root}/control", change) == (200, {"ok": True})
        assert (await _post(http, f"{url}/responses", ASK))[0] == 404
        status, body = await _post(http, f"{url}/chat/completions", {"model": "m", "messages": []})
        assert (status, body["choices"][0]["message"]["content"]) == (200, '{"yes": 1}')
        async with http.get(f"{root}/ledger") as response:
            told = await response.json()
        process.kill()
        await process.wait()
    records = read_ledger(file)
    assert told["calls"] == [record.to_json() for record in records]
    assert [r.status for r in records] == [503, 200, 404, 200]
    assert [r.outcome for r in records] == [
        Outcome.FAULTED,
        Outcome.ANSWERED,
        Outcome.FAULTED,
        Outcome.ANSWERED,
    ]


async def test_it_stops_at_a_signal_with_success() -> None:
    async with run_server() as (_, process):
        process.terminate()
        async with asyncio.timeout(30):
            assert await process.wait() == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"respones": False}, "'respones'"),
        ({"responses": "perhaps"}, "responses"),
        ({"latency": {"median": "slow"}}, "median"),
        ({"rules": [{"fault": {"kind": "explode"}}]}, "kind"),
    ],
)
async def test_a_wrong_change_is_refused_whole(
    model_server: Any, change: dict[str, object], said: str
) -> None:
    root = model_server.base_url.removesuffix("/v1")
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{root}/control", json={**change, "chat": False}) as response,
    ):
        assert response.status == 400
        assert said in await response.text()
    assert model_server.switches.chat


async def test_a_file_without_rules_is_one_line_on_stderr(tmp_path: Path) -> None:
    faults = tmp_path / "faults.json"
    faults.write_text('[{"mach": {}}]')
    async with run_server("--faults", str(faults)) as (address, process):
        assert address == ""
        assert process.stderr is not None
        told = (await process.stderr.read()).decode()
        assert await process.wait() == 2
    assert told.count("\n") == 1
    assert "'mach'" in told


async def _post(http: aiohttp.ClientSession, url: str, body: Any) -> tuple[int, Any]:
    async with http.post(url, json=body) as response:
        return response.status, await response.json()
