"""The context of a model by its server's list: asked for when a route is asked about, and prompts are fitted to it."""

from pathlib import Path
from typing import Final

import pytest

from parley.gateway.routing import model_lists
from parley.v1 import gateway_pb2
from tests.integration.gateway.harness import (
    Gateway,
    request,
    routes_file,
    run_gateway,
    run_with_server,
    settings_for,
)
from tests.integration.gateway.scenarios import KEYS
from tests.support.manual_clock import ManualClock
from tests.support.model_server import Fault, FaultKind, Match, ModelServer, Rule, error

MODELS: Final = "/v1/models"


async def context_of(gateway: Gateway, route: str) -> int:
    listed = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest(names=[route]))
    return next(each.context_tokens for each in listed.routes if each.name == route)


async def test_a_route_has_the_context_that_its_server_lists() -> None:
    async with (
        ModelServer(models=("m", "n"), model_entry={"max_model_len": 4096}) as server,
        run_with_server(server) as gateway,
    ):
        assert await context_of(gateway, "openai/m") == 4096
        assert await context_of(gateway, "openai/n") == 4096
        assert await context_of(gateway, "openai/gone") == 0
        assert len(server.ledger.to(MODELS)) == 1


async def test_a_model_of_a_maker_is_known_behind_a_server_that_lists_no_context() -> None:
    async with (
        ModelServer(models=("gpt-4o-mini",), model_entry={}) as server,
        run_with_server(server) as gateway,
    ):
        assert await context_of(gateway, "openai/gpt-4o-mini") == 128_000
    async with (
        ModelServer(models=("gpt-4o-mini",), model_entry={"max_model_len": 4096}) as server,
        run_with_server(server) as gateway,
    ):
        assert await context_of(gateway, "openai/gpt-4o-mini") == 4096, "what its server lists counts"


async def test_a_gateway_that_expects_a_debate_asks_its_provider_at_its_start_and_not_again() -> None:
    async with ModelServer(models=("m-1",), model_entry={"max_model_len": 4096}) as server:
        async with run_gateway(settings_for(server)) as gateway:
            await gateway.stub.ListAgents(gateway_pb2.ListAgentsRequest())
            assert not server.ledger.to(MODELS), "nobody has a debate yet"
        async with run_gateway(settings_for(server), expects_debate=True) as gateway:
            await server.ledger.wait_for(lambda ledger: bool(ledger.to(MODELS)), 30)
            assert await context_of(gateway, "openai/m-1") == 4096
            assert len(server.ledger.to(MODELS)) == 1


async def test_a_prompt_is_fitted_to_the_context_that_is_listed() -> None:
    documents = [
        gateway_pb2.PromptPart(role=gateway_pb2.PROMPT_ROLE_USER, text="word " * 4000, shrink_priority=1),
        gateway_pb2.PromptPart(role=gateway_pb2.PROMPT_ROLE_USER, text="Is water wet?"),
    ]
    asked = request(routes=["openai/m"])
    asked.prompt.extend(documents)
    async with (
        ModelServer(model_entry={"max_model_len": 1024}, models=("m",), context_tokens=1024) as server,
        run_with_server(server) as gateway,
    ):
        assert await context_of(gateway, "openai/m") == 1024
        heard = await gateway.ask(asked)
        assert heard.answer.prompt_characters_left_out > 10_000


async def test_what_the_file_says_of_a_context_comes_before_the_list(tmp_path: Path) -> None:
    async with ModelServer(model_entry={"max_model_len": 4096}) as server:
        settings = routes_file(tmp_path, server, extra="    context_tokens: 512\n")
        async with run_gateway(settings, environment=KEYS) as gateway:
            assert await context_of(gateway, "p1/m") == 512
            assert not server.ledger.to(MODELS)


async def test_a_setting_says_it_of_every_route_of_which_the_file_does_not(tmp_path: Path) -> None:
    async with ModelServer(model_entry={"max_model_len": 4096}) as server:
        given = routes_file(tmp_path, server, extra="    context_tokens: 512\n")
        async with run_gateway(
            given.model_copy(update={"context_tokens": 2048}), environment=KEYS
        ) as gateway:
            assert await context_of(gateway, "p1/m") == 512
            assert await context_of(gateway, "p1/other") == 2048
            assert not server.ledger.to(MODELS)


async def test_the_model_of_a_base_url_alone_is_known_before_the_first_call() -> None:
    async with (
        ModelServer(models=("m",), model_entry={"meta": {"n_ctx": 2048}}) as server,
        run_with_server(server, model=None) as gateway,
    ):
        listed = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest())
        assert list(listed.default_routes) == ["openai/m"]
        assert await context_of(gateway, "openai/m") == 2048
        assert (await gateway.ask()).answer.route == "openai/m"
        assert len(server.ledger.to(MODELS)) == 1


@pytest.mark.parametrize("fault", [Fault(FaultKind.HANG), error(404), error(500)], ids=lambda each: each.name)
async def test_a_server_that_gives_no_list_keeps_nobody_waiting_and_is_asked_again_later(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_lists, "_SECONDS", 0.2)
    clock = ManualClock()
    rules = [Rule(Match(path=MODELS), fault=fault)]
    async with (
        ModelServer(rules=rules, model_entry={"max_model_len": 4096}, models=("m",)) as server,
        run_with_server(server, clock=clock) as gateway,
    ):
        assert await context_of(gateway, "openai/m") == 0
        server.rules = []
        assert await context_of(gateway, "openai/m") == 0, "not asked again at once"
        assert (await gateway.routes())["openai/m"].failures_in_a_row == 0
        clock.advance(60)
        assert await context_of(gateway, "openai/m") == 4096


async def is_demonstration(gateway: Gateway, route: str) -> bool:
    listed = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest(names=[route]))
    return next(each.demonstration for each in listed.routes if each.name == route)


async def test_a_tiny_model_is_a_demonstration_by_its_name_or_by_what_its_server_lists() -> None:
    async with ModelServer(models=("m",)) as server, run_with_server(server) as gateway:
        assert await is_demonstration(gateway, "openai/smollm2:135m")
        assert not await is_demonstration(gateway, "openai/m")
    entry = {"meta": {"n_params": 134_515_008}}
    async with ModelServer(models=("m",), model_entry=entry) as server, run_with_server(server) as gateway:
        assert await is_demonstration(gateway, "openai/m")
