"""The examples of docs/guides/clients.md and examples/, run as they are written against an orchestrator over real gRPC."""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from parley.client import DebateStatus, ParleyClient
from tests.support.orchestration import Orchestrator

ROOT: Final = Path(__file__).parent.parent.parent.parent
GUIDE: Final = ROOT / "docs" / "guides" / "clients.md"
NODE: Final = ROOT / "examples" / "node"
WRITTEN_ADDRESS: Final = "127.0.0.1:7401"
INSTALL_SECONDS: Final = 120
RUN_SECONDS: Final = 60

BUF: Final = shutil.which("buf", path=Path(sys.executable).parent)
NPM: Final = shutil.which("npm")


def blocks(language: str) -> list[str]:
    """The guide's blocks of code in a language, in its order."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def names_in(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


async def ran(command: Sequence[str], folder: Path, seconds: float = RUN_SECONDS) -> tuple[int, str, str]:
    """What a command comes to: its exit code, stdout and stderr."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**kept, "PATH": path},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_the_examples_in_python_do_what_the_guide_says(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    hold, steer, keep = (
        block.replace(WRITTEN_ADDRESS, orchestrator.server.address) for block in blocks("python")
    )
    held, steered = await asyncio.gather(
        *(ran([sys.executable, "-c", block], tmp_path) for block in (hold, steer))
    )
    assert held[::2] == steered[::2] == (0, "")
    assert "closed\nThe answer.\n" in held[1]
    assert re.match(r"[1-3] of 3 rounds: The answer\.", steered[1])  # it may be over before it is told to end
    kept = await ran([sys.executable, "-c", keep], tmp_path)
    assert kept[::2] == (0, ""), kept[2]
    (debate,) = re.findall(r"^(deb-\S+) .*Redis or in PostgreSQL\?$", kept[1], re.MULTILINE)
    assert names_in(tmp_path) >= {f"{debate}.md", "payments.zip"}
    async with ParleyClient(orchestrator.server.address) as parley:
        assert debate not in [each.id async for each in parley.list()]


@pytest.mark.skipif(BUF is None, reason="buf is not installed: make setup-dev")
async def test_the_examples_with_buf_curl_hold_a_debate_by_reflection_alone(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    (block,) = blocks("sh")
    code, out, err = await ran(
        ["sh", "-euc", block.replace(WRITTEN_ADDRESS, orchestrator.server.address)], tmp_path
    )
    assert (code, err) == (0, "")
    assert '"closed": {}' in out
    assert '"markdown": "The answer.' in out
    async with ParleyClient(orchestrator.server.address) as parley:
        (found,) = [each async for each in parley.list(labels={"team": "search"})]
    assert DebateStatus.Name(found.status) == "DEBATE_STATUS_COMPLETED"


@pytest.mark.long
@pytest.mark.skipif(NPM is None, reason="npm is not installed")
async def test_the_example_in_node_holds_a_debate_and_reads_the_reason_of_a_failure(
    orchestrator: Orchestrator, tmp_path: Path
) -> None:
    folder = tmp_path / "examples" / "node"
    shutil.copytree(NODE, folder, ignore=shutil.ignore_patterns("node_modules"))
    (tmp_path / "protos").symlink_to(ROOT / "protos")
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
    code, _, err = await ran(install, folder, INSTALL_SECONDS)
    if code:
        pytest.skip(f"npm could not install: {err.strip()[-500:]}")
    address = orchestrator.server.address
    code, out, err = await ran(["node", "debate.js", address, "Which?"], folder)
    assert (code, err) == (0, "")
    assert "closed\nThe answer.\n" in out
    async with ParleyClient(address) as parley:
        (found,) = [each async for each in parley.list(labels={"team": "payments"})]
    assert f"{found.id} DEBATE_STATUS_COMPLETED" in out
    refused = await ran(["node", "debate.js", address, " "], folder)
    assert refused == (1, "", "INVALID_ARGUMENT: spec.question: must not be blank\n")
