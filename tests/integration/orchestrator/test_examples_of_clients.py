"""The examples of examples/, run as they are written against an orchestrator over real gRPC."""

import asyncio
import base64
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from parley.client import ParleyClient
from parley.orchestrator.delivery.channels.webhook import WebhookChannel
from parley.orchestrator.delivery.message import DeliveryError
from parley.orchestrator.outgoing.reach import Reach
from parley.orchestrator.outgoing.sender import GuardedSender
from parley.runtime.clock import SystemClock
from tests.support.made_messages import make_message
from tests.support.orchestration import Orchestrator
from tests.support.programs import run_program

ROOT: Final = Path(__file__).parent.parent.parent.parent
NODE: Final = ROOT / "examples" / "node"
INSTALL_SECONDS: Final = 120
RUN_SECONDS: Final = 60

NPM: Final = shutil.which("npm")


async def run_example(
    command: Sequence[str], folder: Path, seconds: float = RUN_SECONDS
) -> tuple[int, str, str]:
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
    code, _, err = await run_example(install, folder, INSTALL_SECONDS)
    if code:
        pytest.skip(f"npm could not install: {err.strip()[-500:]}")
    address = orchestrator.server.address
    code, out, err = await run_example(["node", "debate.js", address, "Which?"], folder)
    assert (code, err) == (0, "")
    assert "closed\nThe answer.\n" in out
    async with ParleyClient(address) as parley:
        (found,) = [each async for each in parley.list(labels={"team": "payments"})]
    assert f"{found.id} DEBATE_STATUS_COMPLETED" in out
    refused = await run_example(["node", "debate.js", address, " "], folder)
    assert refused == (1, "", "INVALID_ARGUMENT: spec.question: must not be blank\n")


@pytest.mark.long
@pytest.mark.skipif(NPM is None, reason="npm is not installed")
async def test_the_receiver_in_node_verifies_webhooks(tmp_path: Path) -> None:
    shutil.copytree(NODE, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
    code, _, err = await run_example(install, tmp_path, INSTALL_SECONDS)
    if code:
        pytest.skip(f"npm could not install: {err.strip()[-500:]}")
    right, wrong = (f"whsec_{base64.b64encode(each * 32).decode()}" for each in (b"a", b"b"))
    process = await asyncio.create_subprocess_exec(
        *("node", "receive.js", "0"),
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOOK_SECRET": right},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(RUN_SECONDS):
            port = int((await process.stdout.readline()).split()[1])
            message = make_message(body=b'{"id": "dlv-1", "type": "t", "data": {"answer": "Yes."}}')
            sender = GuardedSender(Reach(hosts=frozenset({"127.0.0.1"})))
            with pytest.raises(DeliveryError, match="401"):
                await WebhookChannel(sender, SystemClock(), f"http://127.0.0.1:{port}", (wrong,)).send(
                    message
                )
            await WebhookChannel(sender, SystemClock(), f"http://127.0.0.1:{port}", (wrong, right)).send(
                message
            )
            assert await process.stdout.readline() == b"dlv-1 t Yes.\n"
    finally:
        process.kill()
        await process.wait()
