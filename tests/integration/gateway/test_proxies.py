"""A gateway whose models are behind an HTTP proxy, by the usual variables."""

import pytest

from parley.gateway.settings import GatewaySettings
from tests.integration.gateway.harness import failure_of, request, running
from tests.support.model_server import ModelServer


async def test_models_are_asked_by_the_proxy_but_for_hosts_that_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ModelServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1"))
        settings = GatewaySettings(
            openai_base_url="http://models.invalid/v1", local_model="off", openrouter_api_key=None
        )
        async with running(settings) as gateway:
            heard = await gateway.ask(request())
            assert heard.answer.text
            assert proxy.ledger.calls
        monkeypatch.setenv("NO_PROXY", ".invalid")
        async with running(settings) as gateway:
            failed = await failure_of(gateway, request(timeout=5.0))
            assert "models.invalid" in failed.message
