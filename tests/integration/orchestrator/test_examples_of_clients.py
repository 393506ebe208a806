"""The examples of examples/, run as they are written against an orchestrator over real gRPC."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from parley.client import ParleyClient
from tests.support.orchestration import Orchestrator
from tests.support.programs import run_program

ROOT: Final = Path(__file__).parent.parent.parent.parent
NODE: Final = ROOT / "examples" / "node"
INSTALL_SECONDS: Final = 120
RUN_SECONDS: Final = 60

NPM: Final = shutil.which("npm")


async def ran(command: Sequence[str], folder: Path, seconds: float = RUN_SECONDS) -> tuple[int, str, str]:
    """What a command comes to: its exit code, stdout and stderr."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    return await run_program(command, folder, seconds, {**kept, "PATH": path})


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
