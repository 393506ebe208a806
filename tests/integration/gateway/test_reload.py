"""An agents file that is read again: taken over whole, or not at all, and followed on in any case."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from parley.v1 import gateway_pb2
from tests.integration.gateway.harness import KEY, Gateway, request, routes_file, running
from tests.integration.gateway.scenarios import KEYS
from tests.support.model_server import ModelServer


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parley.gateway.file_watch._LOOK_SECONDS", 0.02)


class Followed:
    """A gateway, its file, and what its log says."""

    def __init__(self, gateway: Gateway, path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.gateway = gateway
        self._path = path
        self._capfd = capfd

    async def becomes(self, text: str) -> str:
        """What the log says of the file once it holds this text."""
        self._capfd.readouterr()
        self._path.write_text(text, encoding="utf-8")
        said = ""
        async with asyncio.timeout(30):
            while "taken over" not in said:
                await asyncio.sleep(0.01)  # the log tells nobody
                said += "".join(self._capfd.readouterr())
        return said

    async def agents(self) -> set[str]:
        listed = await self.gateway.stub.ListAgents(gateway_pb2.ListAgentsRequest())
        return {agent.id for agent in listed.agents}


@asynccontextmanager
async def followed(
    folder: Path, server: ModelServer, capfd: pytest.CaptureFixture[str], **more: Any
) -> AsyncIterator[Followed]:
    async with running(routes_file(folder, server, **more), environment=KEYS) as gateway:
        yield Followed(gateway, folder / "agents.yaml", capfd)


@pytest.mark.parametrize(
    "provider",
    [
        "base_url: 'http://[::1/v1'",
        "base_url: 'http://127.0.0.1:99999/v1'",
        "base_url: 'http://✓..x/v1'",
        "base_url: 'http://127.0.0.1:9/v1', headers: {X-A: '✓'}",
        "base_url: 'http://127.0.0.1:9/v1', headers: {'X é': b}",
    ],
)
async def test_a_file_with_an_endpoint_that_cannot_be_asked_is_refused_and_the_next_one_taken(
    provider: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(answer="one") as server, followed(tmp_path, server, capfd) as file:
        said = await file.becomes(f"providers:\n  - {{name: p1, {provider}}}\n")
        assert "not taken over" in said
        assert "agents.yaml:2: providers[0]." in said
        assert (await file.gateway.ask()).answer.text == "one"
        assert "not taken over" not in await file.becomes("agents:\n  - role: poet\n" + good(server))
        assert "poet" in await file.agents()


async def test_a_file_that_is_empty_for_a_moment_takes_no_route_away(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with (
        ModelServer(answer="one") as server,
        # With OpenAI set too, a file without providers could be used.
        followed(tmp_path, server, capfd, openai_api_key=KEY, openai_base_url=server.base_url) as file,
    ):
        assert "is empty" in await file.becomes("")
        assert "is empty" in await file.becomes("# to be written\n")
        assert (await file.gateway.ask(request(routes=["p1/m"]))).answer.text == "one"


async def test_a_file_that_leaves_no_provider_changes_neither_routes_nor_agents(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(answer="one") as server, followed(tmp_path, server, capfd) as file:
        before = await file.agents()
        assert "leaves no provider" in await file.becomes("agents:\n  - role: poet\n")
        assert await file.agents() == before
        assert (await file.gateway.ask()).answer.text == "one"


def good(server: ModelServer) -> str:
    return (
        f"providers:\n  - {{name: p1, base_url: '{server.base_url}', api_key_env: KEY_1}}\n"
        "routes:\n  - {provider: p1, model: m}\n"
    )
