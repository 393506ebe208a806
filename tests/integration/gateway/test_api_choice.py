"""Which of an endpoint's two APIs is asked."""

import asyncio
from pathlib import Path

import grpc
import pytest

from parley.gateway.wire.api import Api
from tests.integration.gateway.harness import (
    CHAT,
    RESPONSES,
    failure_of,
    kinds_with,
    make_structured_request,
    paths,
    routes_file,
    run_gateway,
    run_with_server,
    settings_for,
)
from tests.integration.gateway.scenarios import KEYS
from tests.support.model_server import (
    ErrorShape,
    Fault,
    Match,
    ModelServer,
    Rule,
    error,
)


async def test_an_endpoint_with_responses_gets_one_request_a_call() -> None:
    async with ModelServer() as server, run_with_server(server) as gateway:
        for _ in range(3):
            assert (await gateway.ask()).answer.usage.requests == 1
        assert paths(server) == [RESPONSES] * 3


@pytest.mark.parametrize("shape", list(ErrorShape))
async def test_an_endpoint_without_responses_gets_one_request_a_call_after_the_first(
    shape: ErrorShape,
) -> None:
    async with (
        ModelServer(responses=False, missing_shape=shape) as server,
        run_with_server(server) as gateway,
    ):
        assert (await gateway.ask()).answer.usage.requests == 2
        for _ in range(3):
            assert (await gateway.ask()).answer.usage.requests == 1
        assert (await gateway.ask(make_structured_request())).answer.usage.requests == 1
        assert paths(server) == [RESPONSES, *[CHAT] * 5]


async def test_calls_that_come_together_find_out_only_once_which_api_there_is() -> None:
    async with ModelServer(responses=False) as server, run_with_server(server) as gateway:
        await asyncio.gather(*(gateway.ask() for _ in range(8)))
        assert sorted(paths(server)) == [*[CHAT] * 8, RESPONSES]


@pytest.mark.parametrize("status", [401, 403, 429])
async def test_a_refusal_is_not_a_missing_endpoint(status: int) -> None:
    rules = [Rule(fault=error(status), times=1)]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        try:
            await gateway.ask()
        except grpc.aio.AioRpcError:
            await gateway.ask()
        assert CHAT not in paths(server)


@pytest.mark.parametrize("first", [CHAT, RESPONSES])
@pytest.mark.parametrize(
    "fault",
    [
        error(500, "mock_response is not a response"),
        error(400, "Cannot determine type of 'item'"),
        error(422, "Field required: input"),
    ],
)
async def test_an_api_that_does_not_serve_gives_way_to_the_other_one_which_is_remembered(
    first: str, fault: Fault
) -> None:
    rules = [Rule(Match(path=first), fault=fault)]
    kinds = kinds_with(first_api=Api.CHAT if first == CHAT else Api.RESPONSES)
    async with (
        ModelServer(rules=rules) as server,
        run_gateway(settings_for(server), kinds=kinds) as gateway,
    ):
        assert (await gateway.ask()).answer.usage.requests == 2
        for _ in range(3):
            assert (await gateway.ask()).answer.usage.requests == 1
        other = RESPONSES if first == CHAT else CHAT
        assert paths(server) == [first, *[other] * 4]
        assert (await gateway.routes())["openai/m-1"].failures_in_a_row == 0


async def test_an_outage_costs_one_request_to_the_other_api_and_is_told_as_the_usual_one_said_it() -> None:
    rules = [Rule(Match(path=CHAT), fault=error(500, "down")), Rule(fault=error(418, "what is this"))]
    async with (
        ModelServer(rules=rules) as server,
        run_gateway(settings_for(server), kinds=kinds_with(first_api=Api.CHAT)) as gateway,
    ):
        failure = await failure_of(gateway)
        assert "500 down" in failure.message
        assert paths(server) == [CHAT, RESPONSES, CHAT, CHAT]


async def test_any_base_url_but_openais_own_is_asked_by_chat_completions_first() -> None:
    async with ModelServer() as server, run_gateway(settings_for(server)) as gateway:
        await gateway.ask()
        assert paths(server) == [CHAT]


async def test_a_fixed_api_is_asked_alone(tmp_path: Path) -> None:
    for api, path in (("chat", CHAT), ("responses", RESPONSES)):
        async with ModelServer(responses=api == "responses", chat=api == "chat") as server:
            wrong = "responses" if api == "chat" else "chat"
            async with run_gateway(routes_file(tmp_path, server, api=api), environment=KEYS) as gateway:
                await gateway.ask()
            async with run_gateway(routes_file(tmp_path, server, api=wrong), environment=KEYS) as gateway:
                assert (await failure_of(gateway)).metadata["provider_status"] == "404"
            assert paths(server) == [path, CHAT if path == RESPONSES else RESPONSES]


async def test_an_unknown_model_is_not_a_missing_endpoint() -> None:
    async with ModelServer(models=("other",)) as server, run_with_server(server) as gateway:
        failure = await failure_of(gateway)
        assert (failure.code, failure.reason) == (grpc.StatusCode.NOT_FOUND, "UNKNOWN_ROUTE")
        assert "openai/m-1" in failure.message
        assert paths(server) == [RESPONSES]


async def test_an_endpoint_with_neither_api_says_so() -> None:
    async with ModelServer(responses=False, chat=False) as server, run_with_server(server) as gateway:
        failure = await failure_of(gateway)
        assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "PROVIDER_UNREACHABLE")
        assert failure.metadata["provider_status"] == "404"
        assert failure.message.endswith(
            "; no OpenAI-compatible API answers there, look at the path of its base URL"
        )
