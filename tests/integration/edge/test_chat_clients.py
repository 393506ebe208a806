"""Debates as models, asked with what people have: LiteLLM's proxy, the `llm` command and OpenAI's library for Node.js."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from openai import AsyncOpenAI

from tests.integration.edge.conftest import Edge
from tests.support.guides import find_blocks
from tests.support.ports import free_ports
from tests.support.programs import run_program

pytestmark = pytest.mark.long

_INSTALL_SECONDS: Final = 400
_RUN_SECONDS: Final = 60
_START_SECONDS: Final = 120
_MASTER_KEY: Final = "sk-of-the-proxy-in-this-test-alone"
_GUIDE: Final = "docs/guides/openai-clients.md"


async def run_client(
    command: Sequence[str | Path], folder: Path, seconds: float, variables: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """What a command comes to: its exit code, stdout and stderr."""
    return await run_program(command, folder, seconds, {**os.environ, **(variables or {})})


async def install(package: str, folder: Path) -> Path:
    """Install a package from PyPI into an environment of its own, and return where its commands are; skip if that fails."""
    given = os.environ.get("PARLEY_TEST_CLIENTS")
    if given:
        return Path(given)
    code, _, err = await run_client([sys.executable, "-m", "venv", folder], folder.parent, _RUN_SECONDS)
    assert code == 0, err
    pip: list[str | Path] = [
        folder / "bin" / "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        package,
    ]
    code, _, err = await run_client(pip, folder, _INSTALL_SECONDS)
    if code:
        pytest.skip(f"pip could not install {package}: {err.strip()[-500:]}")
    return folder / "bin"


def commands(part: str, edge: Edge) -> str:
    """Return the guide's commands that name something, for this edge."""
    scripts = [each.script for each in find_blocks(_GUIDE) if each.language == "sh" and part in each.text]
    (script,) = scripts
    return script.replace("http://localhost:7400", edge.url)


async def test_the_llm_command_asks_a_debate_as_the_guide_says(edge: Edge, tmp_path: Path) -> None:
    found = await install("llm==0.36", tmp_path / "llm")
    variables = {
        "PATH": f"{found}{os.pathsep}{os.environ['PATH']}",
        "LLM_USER_PATH": str(tmp_path),
        "TOKEN": "none",
    }
    code, out, err = await run_client(
        ["sh", "-euc", commands("llm ", edge)], tmp_path, _RUN_SECONDS, variables
    )
    assert code == 0, err
    assert "The answer." in out


async def test_the_library_for_node_streams_a_debate_as_the_guide_says(edge: Edge, tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    npm = [
        "npm",
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "openai@7.57.0",
    ]
    code, _, err = await run_client(npm, tmp_path, _INSTALL_SECONDS)
    if code:
        pytest.skip(f"npm could not install: {err.strip()[-500:]}")
    variables = {"TOKEN": "none"}
    code, out, err = await run_client(
        ["sh", "-euc", commands("node ", edge)], tmp_path, _RUN_SECONDS, variables
    )
    assert (code, err) == (0, "")
    assert "### Round 1 of" in out
    assert "The answer." in out


async def test_the_proxy_of_litellm_passes_debates_on_whole_and_streamed(edge: Edge, tmp_path: Path) -> None:
    found = await install("litellm[proxy]==1.108.7", tmp_path / "litellm")
    async with (
        litellm_proxy(found, edge, tmp_path) as url,
        AsyncOpenAI(base_url=url, api_key=_MASTER_KEY, max_retries=0, timeout=_RUN_SECONDS) as client,
    ):
        ask = client.chat.completions
        whole = await ask.create(model="debate", messages=[{"role": "user", "content": "Is water wet?"}])
        assert "The answer." in (whole.choices[0].message.content or "")
        assert whole.usage is not None
        assert whole.usage.prompt_tokens > 0
        stream = await ask.create(
            model="debate", messages=[{"role": "user", "content": "Is fire hot?"}], stream=True
        )
        deltas = [each.choices[0].delta async for each in stream if each.choices]
    assert "The answer." in "".join(each.content or "" for each in deltas)
    assert "### Round 1 of" in "".join(getattr(each, "reasoning_content", None) or "" for each in deltas)


@asynccontextmanager
async def litellm_proxy(found: Path, edge: Edge, folder: Path) -> AsyncIterator[str]:
    """Run the proxy before an edge, with the guide's configuration; yield its address."""
    (block,) = [each for each in find_blocks(_GUIDE) if each.text.startswith("model_list:")]
    config = folder / "litellm.yaml"
    config.write_text(block.text.replace("http://localhost:7400", edge.url), encoding="utf-8")
    port = next(free_ports())
    process = await asyncio.create_subprocess_exec(
        found / "litellm",
        *("--config", config, "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"),
        cwd=folder,
        env={
            **os.environ,
            "TOKEN": "none",
            "LITELLM_MASTER_KEY": _MASTER_KEY,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await wait_until_it_listens(f"http://127.0.0.1:{port}/health/liveliness", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def wait_until_it_listens(url: str, process: asyncio.subprocess.Process) -> None:
    """Wait until a server answers."""
    async with asyncio.timeout(_START_SECONDS), aiohttp.ClientSession() as session:
        while True:
            assert process.returncode is None, "it ended at its start"
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.2)
