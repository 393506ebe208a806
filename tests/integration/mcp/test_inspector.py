"""The protocol's own inspector, as a command, against both transports: it checks what it gets against the protocol."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.orchestration import Orchestrator
from tests.support.programs import run_program

INSPECTOR: Final = "@modelcontextprotocol/inspector@0.15.0"
INSTALL_SECONDS: Final = 240
RUN_SECONDS: Final = 60
NPM: Final = shutil.which("npm")
pytestmark = [pytest.mark.long, pytest.mark.skipif(NPM is None, reason="npm is not installed")]


async def run(*command: str, folder: Path, seconds: float = RUN_SECONDS) -> tuple[int, str, str]:
    """What a command comes to: its exit code, stdout and stderr."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    return await run_program(command, folder, seconds, {**kept, "PATH": path, "HOME": str(folder)})


async def test_the_inspector_lists_the_tools_holds_a_debate_and_reads_its_report(
    orchestrator: Orchestrator, url: str, tmp_path: Path
) -> None:
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", INSPECTOR]
    code, _, err = await run(*install, folder=tmp_path, seconds=INSTALL_SECONDS)
    if code:
        pytest.skip(f"npm could not install: {err.strip()[-500:]}")
    inspector = str(tmp_path / "node_modules" / ".bin" / "mcp-inspector")
    started = {"command": "parley", "args": ["mcp", "--server", orchestrator.server.address]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"parley": started}}), encoding="utf-8")
    over_stdio = ["--config", "mcp.json", "--server", "parley"]
    over_http = [url, "--transport", "http"]

    async def inspect(server: list[str], *asked: str) -> dict[str, Any]:
        code, out, err = await run(inspector, "--cli", *server, "--method", *asked, folder=tmp_path)
        assert code == 0, err
        answer: dict[str, Any] = json.loads(out)
        return answer

    for server in (over_stdio, over_http):
        tools = await inspect(server, "tools/list")
        assert "debate" in [each["name"] for each in tools["tools"]]
        held = await inspect(
            server, "tools/call", "--tool-name", "debate", "--tool-arg", "question=Is water wet?"
        )
        result = held["structuredContent"]
        assert (held["isError"], result["status"]) == (False, "completed")
        report = await inspect(server, "resources/read", "--uri", result["report"])
        assert "Is water wet?" in report["contents"][0]["text"]
