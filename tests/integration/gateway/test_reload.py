"""An agents file that is read again: taken over whole, or not at all, and followed on in any case."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from parley.v1 import gateway_pb2
from tests.integration.gateway.harness import KEY, Gateway, failure_of, request, routes_file, run_gateway
from tests.integration.gateway.scenarios import KEYS
from tests.support.model_server import Call, Match, ModelServer, Rule


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
async def follow_gateway(
    folder: Path, server: ModelServer, capfd: pytest.CaptureFixture[str], **more: Any
) -> AsyncIterator[Followed]:
    async with run_gateway(routes_file(folder, server, **more), environment=KEYS) as gateway:
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
    async with ModelServer(answer="one") as server, follow_gateway(tmp_path, server, capfd) as file:
        said = await file.becomes(f"providers:\n  - {{name: p1, {provider}}}\n")
        assert "not taken over" in said
        assert "agents.yaml:2: providers[0]." in said
        assert (await file.gateway.ask()).answer.text == "one"
        assert "not taken over" not in await file.becomes(
            "agents:\n  - role: poet\n" + write_configuration(server)
        )
        assert "poet" in await file.agents()


async def test_a_file_that_is_empty_for_a_moment_takes_no_route_away(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with (
        ModelServer(answer="one") as server,
        # With OpenAI set too, a file without providers could be used.
        follow_gateway(tmp_path, server, capfd, openai_api_key=KEY, openai_base_url=server.base_url) as file,
    ):
        assert "is empty" in await file.becomes("")
        assert "is empty" in await file.becomes("# to be written\n")
        assert (await file.gateway.ask(request(routes=["p1/m"]))).answer.text == "one"


async def test_a_file_that_leaves_no_provider_changes_neither_routes_nor_agents(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(answer="one") as server, follow_gateway(tmp_path, server, capfd) as file:
        before = await file.agents()
        assert "leaves no provider" in await file.becomes("agents:\n  - role: poet\n")
        assert await file.agents() == before
        assert (await file.gateway.ask()).answer.text == "one"


async def test_a_key_in_a_file_is_changed_without_a_restart(tmp_path: Path) -> None:
    keys: list[str] = []

    def note(call: Call) -> str:
        keys.append(call.headers["Authorization"])
        return "yes"

    key = tmp_path / "key"
    key.write_text("house-key-1\n")
    async with ModelServer(rules=[Rule(Match(), answer=note)]) as server:
        settings = routes_file(tmp_path, server)
        file = tmp_path / "agents.yaml"
        file.write_text(file.read_text().replace("api_key_env: KEY_1", "api_key_file: key"))
        async with run_gateway(settings) as gateway:
            await gateway.ask()
            key.write_text("house-key-22\n")
            async with asyncio.timeout(30):
                while keys[-1] != "Bearer house-key-22":
                    await gateway.ask()
    assert keys[0] == "Bearer house-key-1"


async def test_a_model_that_is_not_on_its_providers_list_is_not_asked_for(tmp_path: Path) -> None:
    async with ModelServer(answer="one") as server:
        settings = routes_file(tmp_path, server)
        file = tmp_path / "agents.yaml"
        file.write_text(file.read_text().replace("    api:", "    models: [m, n]\n    api:"))
        async with run_gateway(settings, environment=KEYS) as gateway:
            assert (await gateway.ask(request(routes=["p1/n"]))).answer.text == "one"
            refused = await failure_of(gateway, request(routes=["p1/huge"]))
            assert list((await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest())).open_providers) == []
    assert refused.reason == "UNKNOWN_ROUTE"
    assert [call.model for call in server.ledger.calls] == ["n"]


def write_configuration(server: ModelServer) -> str:
    return (
        f"providers:\n  - {{name: p1, base_url: '{server.base_url}', api_key_env: KEY_1}}\n"
        "routes:\n  - {provider: p1, model: m}\n"
    )
