"""Model servers of this machine as the default routes of a gateway that nobody configured."""

from pathlib import Path
from typing import Any

import pytest

from parley.gateway.discovery import UsualServer
from parley.gateway.settings import GatewaySettings
from parley.runtime.errors import ConfigurationError
from parley.v1 import gateway_pb2
from tests.integration.gateway.harness import failure_of, run_gateway
from tests.support.model_server import ModelServer


def make_settings(**more: Any) -> GatewaySettings:
    keys: dict[str, Any] = {"openai_api_key": None, "openai_base_url": None, "openrouter_api_key": None}
    return GatewaySettings(
        **{**keys, "local_model": "off", "local_servers": "auto", "grace_seconds": 1.0, **more}
    )


def ollama(server: ModelServer) -> UsualServer:
    return UsualServer("ollama", "Ollama", server.port)


async def test_what_is_found_answers_and_is_named_with_its_models() -> None:
    async with (
        ModelServer(models=("llama3.2:3b", "qwen3:8b"), answer="It is.") as server,
        run_gateway(make_settings(), usual_servers=[ollama(server)]) as gateway,
    ):
        listed = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest())
        answer = (await gateway.ask()).answer
    assert list(listed.default_routes) == ["ollama/llama3.2:3b"]
    assert [(each.title, list(each.models)) for each in listed.found_servers] == [
        ("Ollama", ["llama3.2:3b", "qwen3:8b"])
    ]
    assert list(listed.open_providers) == ["ollama"]
    assert not any(route.local or route.demonstration for route in listed.routes)
    assert (answer.text, answer.route, answer.usage.cost_micros) == ("It is.", "ollama/llama3.2:3b", 0)


async def test_the_next_server_answers_where_the_first_one_is_gone() -> None:
    async with ModelServer(models=("a",)) as first, ModelServer(models=("b",), answer="Here.") as second:
        usual = [ollama(first), UsualServer("vllm", "vLLM", second.port)]
        async with run_gateway(make_settings(), usual_servers=usual) as gateway:
            await first.stop()
            assert (await gateway.ask()).answer.route == "vllm/b"


@pytest.mark.parametrize("model", ["qwen3:8b", "ollama/qwen3:8b"])
async def test_a_model_of_theirs_can_be_chosen(model: str) -> None:
    async with (
        ModelServer(models=("llama3.2:3b", "qwen3:8b")) as server,
        run_gateway(make_settings(model=model), usual_servers=[ollama(server)]) as gateway,
    ):
        assert (await gateway.ask()).answer.route == "ollama/qwen3:8b"


async def test_a_model_that_none_of_them_lists_stops_the_start_and_says_what_there_is() -> None:
    async with ModelServer(models=("llama3.2:3b",)) as server:
        with pytest.raises(
            ConfigurationError, match=r"PARLEY_MODEL: .* gpt-5-mini; they list: ollama/llama3\.2:3b"
        ):
            async with run_gateway(make_settings(model="gpt-5-mini"), usual_servers=[ollama(server)]):
                pass


@pytest.mark.parametrize(
    "configured",
    [
        {"openai_api_key": "k"},
        {"openai_base_url": "http://127.0.0.1:9/v1"},
        {"openrouter_api_key": "k"},
        {"local_servers": "off"},
    ],
    ids=lambda given: next(iter(given)),
)
async def test_nobody_is_asked_where_something_is_configured(configured: dict[str, Any]) -> None:
    async with ModelServer(models=("m",)) as server:
        async with run_gateway(make_settings(**configured), usual_servers=[ollama(server)]) as gateway:
            listed = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest())
        assert not listed.found_servers
        assert server.ledger.calls == ()


async def test_a_provider_in_the_file_is_reason_enough_even_without_its_key(tmp_path: Path) -> None:
    file = tmp_path / "parley.yaml"
    file.write_text("providers: [{name: mine, base_url: 'http://127.0.0.1:9/v1', api_key_env: MY_KEY}]\n")
    async with ModelServer(models=("m",)) as server:
        settings = make_settings(agents_file=file)
        async with run_gateway(settings, usual_servers=[ollama(server)]) as gateway:
            told = (await failure_of(gateway)).message
            assert "no model is configured" in told
            assert "OPENAI_BASE_URL and PARLEY_MODEL" in told, "a name of a model alone is of no use"
        assert server.ledger.calls == ()


async def test_the_ports_to_look_at_can_be_named() -> None:
    async with ModelServer(models=("m",)) as server:
        settings = make_settings(local_servers=f"{server.port},9")
        async with run_gateway(settings) as gateway:
            listed = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest())
    assert list(listed.default_routes) == [f"port-{server.port}/m"]
