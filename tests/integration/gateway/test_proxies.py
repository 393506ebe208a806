"""A gateway whose models are behind an HTTP proxy, by the usual variables."""

import asyncio

import pytest

from parley.gateway.settings import GatewaySettings
from tests.integration.gateway.harness import failure_of, request, run_gateway
from tests.support.model_server import ModelServer


async def test_models_are_asked_by_the_proxy_but_for_hosts_that_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ModelServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1"))
        settings = GatewaySettings(
            openai_base_url="http://models.invalid/v1", local_model="off", openrouter_api_key=None
        )
        async with run_gateway(settings) as gateway:
            heard = await gateway.ask(request())
            assert heard.answer.text
            assert proxy.ledger.calls
        monkeypatch.setenv("NO_PROXY", ".invalid")
        async with run_gateway(settings) as gateway:
            failed = await failure_of(gateway, request(timeout=60))
            assert "models.invalid" in failed.message


async def test_a_proxy_that_refuses_is_named_with_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        settings = GatewaySettings(
            openai_base_url="https://models.invalid/v1", local_model="off", openrouter_api_key=None
        )
        async with run_gateway(settings) as gateway:
            failed = await failure_of(gateway, request(timeout=60))
    assert failed.reason == "PROVIDER_UNREACHABLE"
    assert "the proxy refuses: 407 Proxy Authentication Required" in failed.message
    assert failed.metadata["input_tokens"] == "0"
