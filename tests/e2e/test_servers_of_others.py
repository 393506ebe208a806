"""A small debate over each of several model servers that others wrote.

`make others` installs them, none of which is needed for anything else, and runs these tests; elsewhere they are skipped.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.ports import free_ports

ROOT = Path(__file__).parent.parent.parent
TOOLS = Path(os.environ.get("PARLEY_TEST_OTHERS", ROOT / "build" / "others"))
ANSWER = json.dumps(
    {
        "description": "One service is right for now.",
        "implementation": "",
        "tradeoffs": [],
        "recommendations": ["Start with one."],
        "unfulfilled_requirements": [],
        "open_questions": [],
        "confidence": 70,
        "scores": {"A": 7, "B": 6},
    }
)
"""What a server says to everything, where it can be told: as a contribution it is read as text."""
_START_SECONDS = 60.0
_DEBATE_SECONDS = 90.0

pytestmark = pytest.mark.timeout(200)


@dataclass(frozen=True)
class Server:
    """A server, the program that runs it, and the file that tells it what to say."""

    program: str
    command: Callable[[Path, int, Path], Sequence[str]]
    model: str = "mock"
    says: Callable[[], str] = str
    has_responses: bool = False


def _fakellm() -> str:
    rule = {"name": "all", "when": {"messages_contain": ""}, "respond": {"content": ANSWER}}
    return json.dumps({"version": 1, "defaults": {"fallback": "deterministic_echo"}, "rules": [rule]})


def _mockllm() -> str:
    return json.dumps({"responses": {}, "defaults": {"unknown_response": ANSWER}})


def _aimock() -> str:
    return json.dumps({"fixtures": [{"match": {}, "response": {"content": ANSWER}}]})


def _litellm() -> str:
    served = {"model": "openai/mock", "api_key": "none", "mock_response": ANSWER}
    return json.dumps({"model_list": [{"model_name": "mock", "litellm_params": served}]})


SERVERS = {
    "fakellm": Server(
        "python/bin/fakellm",
        lambda program, port, says: [str(program), "serve", "--port", str(port), "--config", str(says)],
        says=_fakellm,
    ),
    "mockllm": Server(
        "python/bin/mockllm",
        lambda program, port, says: [str(program), "start", "-h", "127.0.0.1", "-p", str(port), "-r", str(says)],
        model="gpt-4",
        says=_mockllm,
    ),
    "llmock": Server(
        "python/bin/llmock",
        lambda program, port, _: [str(program), "serve", "-h", "127.0.0.1", "-p", str(port)],
        model="gpt-4o",
        has_responses=True,
    ),
    "aimock": Server(
        "node_modules/@copilotkit/aimock/dist/cli.js",
        lambda program, port, says: ["node", str(program), "-p", str(port), "-f", str(says)],
        says=_aimock,
        has_responses=True,
    ),
    "litellm": Server(
        "litellm/bin/litellm",
        lambda program, port, says: [
            str(program), "--host", "127.0.0.1", "--port", str(port), "--config", str(says),
        ],
        says=_litellm,
    ),
}  # fmt: skip
CASES = [
    (name, api)
    for name, server in SERVERS.items()
    for api in (("auto", "chat", "responses") if server.has_responses else ("auto", "chat"))
]


@pytest.mark.parametrize(("name", "api"), CASES)
def test_a_debate_over_a_server_that_others_wrote_ends_in_an_answer(
    name: str, api: str, tmp_path: Path
) -> None:
    server = SERVERS[name]
    with _run_server(name, server, tmp_path) as base_url:
        agents = [{"role": role, "routes": [f"s/{server.model}"]} for role in ("architect", "performance")]
        config = {
            "agents": agents,
            "judge": {"routes": [f"s/{server.model}"]},
            "debate": {"rounds": 1},
            "providers": [{"name": "s", "base_url": base_url, "api": api, "api_key_env": "THEIR_KEY"}],
        }
        path = tmp_path / "debate.json"
        path.write_text(json.dumps(config))
        done = subprocess.run(
            [sys.executable, "-m", "parley.cli", "debate", "One or several?", "--config", str(path)],
            cwd=tmp_path,
            env={**_environment(), "THEIR_KEY": "any"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_DEBATE_SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    if server.says is not str:
        assert "One service is right for now." in done.stdout
    assert done.stdout.strip()


@contextmanager
def _run_server(name: str, server: Server, folder: Path) -> Iterator[str]:
    program = TOOLS / server.program
    if not program.exists():
        pytest.skip(f"{name} is not installed in {TOOLS}: `make others` installs it and runs this test")
    says = folder / "says.json"
    says.write_text(server.says() or "{}")
    port = next(free_ports())
    log = folder / "server.log"
    local = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    with log.open("wb") as written:
        process = subprocess.Popen(
            server.command(program, port, says),
            cwd=folder,
            env={**_environment(), **local},
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            start_new_session=True,
        )
    try:
        ends = time.monotonic() + _START_SECONDS
        while not _listens(port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < ends, log.read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _environment() -> dict[str, str]:
    ours = ("PARLEY_", "OPENAI_", "OPENROUTER_", "LITELLM_", "OTEL_")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}
