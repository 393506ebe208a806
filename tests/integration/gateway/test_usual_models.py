"""The model that is asked where nobody names one: whether its seller still lists it is looked up before a debate."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import SecretStr

from parley.gateway.providers import openai
from parley.gateway.providers.kinds import KINDS
from parley.gateway.settings import GatewaySettings
from parley.v1 import gateway_pb2
from tests.integration.gateway.harness import run_gateway
from tests.support.model_server import ModelServer


@asynccontextmanager
async def list_routes(*models: str, **settings: Any) -> AsyncIterator[gateway_pb2.ListRoutesResponse]:
    """What a gateway says of its routes whose seller of models is a server of ours."""
    async with ModelServer(models=models) as server:
        assert openai.KIND.home is not None
        home = replace(openai.KIND.home, base_url=server.base_url)
        kinds = {**KINDS, "openai": replace(openai.KIND, home=home)}
        given: dict[str, Any] = {"openai_base_url": None, "openrouter_api_key": None, "grace_seconds": 1.0}
        chosen = GatewaySettings(**{**given, "openai_api_key": SecretStr("sk-test"), **settings})
        async with run_gateway(chosen, kinds=kinds) as gateway:
            yield await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest())


async def test_one_that_is_listed_no_more_is_named_with_what_is_likely_to_take_its_place() -> None:
    async with list_routes("gpt-6", "gpt-6-mini") as routes:
        (gone,) = routes.unlisted_defaults
        assert gone == gateway_pb2.UnlistedModel(route=f"openai/{openai.MODEL}", successor="gpt-6-mini")
        assert list(routes.default_routes) == [gone.route]


@pytest.mark.parametrize(
    ("models", "settings"),
    [((openai.MODEL, "gpt-6-mini"), {}), (("gpt-6-mini",), {"model": "gpt-4-turbo"}), ((), {})],
    ids=["it is listed", "a person chose another", "nothing is listed"],
)
async def test_nothing_is_said_of_one_that_is_there_or_was_chosen(
    models: tuple[str, ...], settings: dict[str, Any]
) -> None:
    async with list_routes(*models, **settings) as routes:
        assert not routes.unlisted_defaults
