"""Agents that name no route, and routes that are not there: whatever else works answers."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from parley.gateway.settings import GatewaySettings
from parley.v1 import gateway_pb2
from tests.integration.gateway.harness import failure_of, request, run_gateway, run_with_server
from tests.integration.gateway.scenarios import KEYS, SHORT
from tests.support.manual_clock import ManualClock
from tests.support.model_server import Fault, FaultKind, Latency, Match, ModelServer, Rule, error

MODELS: Final = "/v1/models"
LISTING: Final = Match(path=MODELS)


def providers(folder: Path, *servers: ModelServer) -> GatewaySettings:
    """Providers p1, p2, … in order, none of which says what model is asked."""
    path = folder / "agents.yaml"
    lines = [
        f"  - {{name: p{number}, base_url: '{each.base_url}'}}" for number, each in enumerate(servers, 1)
    ]
    path.write_text("\n".join(["providers:", *lines]) + "\n")
    return GatewaySettings(agents_file=path, local_model="off", grace_seconds=1.0)


def listings(server: ModelServer) -> int:
    return len(server.ledger.to(MODELS)) + sum(call.path == MODELS for call in server.ledger.open_calls)


@pytest.mark.parametrize(
    "fault",
    [Fault(FaultKind.HANG), Fault(FaultKind.DROP_AFTER_HEADERS), error(500), error(400)],
    ids=lambda fault: fault.name,
)
async def test_a_default_provider_that_cannot_say_its_models_is_left_alone_like_any_dead_route(
    fault: Fault, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with (
        ModelServer(rules=[Rule(LISTING, fault=fault)], models=("m",), answer="first") as first,
        ModelServer(models=("m",), answer="second") as second,
        run_gateway(
            providers(tmp_path, first, second), environment=KEYS, clock=clock, timeouts=SHORT
        ) as gateway,
    ):
        for _ in range(6):
            assert (await gateway.ask()).answer.route == "p2/m"
        assert listings(first) == 3
        assert listings(second) == 1

        clock.advance(60)
        for _ in range(3):
            assert (await gateway.ask()).answer.route == "p2/m"
        assert listings(first) == 4

        first.rules = []
        clock.advance(60)
        for _ in range(3):
            assert (await gateway.ask()).answer.route == "p1/m"
        assert listings(first) == 5


async def test_a_provider_that_hangs_over_its_models_takes_a_share_of_the_calls_time_at_most(
    tmp_path: Path,
) -> None:
    rules = [Rule(LISTING, fault=Fault(FaultKind.HANG))]
    async with (
        ModelServer(rules=rules) as first,
        ModelServer(answer="fine") as second,
        run_gateway(providers(tmp_path, first, second), environment=KEYS) as gateway,
    ):
        heard = await asyncio.gather(*(gateway.ask(request(timeout=3)) for _ in range(4)))
        assert {each.answer.text for each in heard} == {"fine"}


async def test_the_only_provider_is_asked_for_its_models_again_within_the_call() -> None:
    rules = [Rule(LISTING, fault=error(503), times=2)]
    async with (
        ModelServer(rules=rules, models=("m",)) as server,
        run_with_server(server, model=None) as gateway,
    ):
        assert (await gateway.ask()).answer.route == "openai/m"
        assert listings(server) == 3


async def test_the_only_provider_that_cannot_say_its_models_is_named_with_what_it_said() -> None:
    rules = [Rule(LISTING, fault=error(503, "starting up"))]
    async with ModelServer(rules=rules) as server, run_with_server(server, model=None) as gateway:
        failure = await failure_of(gateway)
        assert failure.reason == "PROVIDER_UNAVAILABLE"
        assert "openai: 503 starting up" in failure.message
        failure = await failure_of(gateway)
        assert failure.reason == "NO_ROUTE_AVAILABLE"
        assert "openai failed with: 503 starting up" in failure.message
        assert listings(server) == 3


async def test_what_a_default_provider_listed_is_remembered_also_while_calls_are_slow() -> None:
    async with (
        ModelServer(models=("m",), latency=Latency(0.2)) as server,
        run_with_server(server, model=None) as gateway,
    ):
        for _ in range(2):
            await asyncio.gather(*(gateway.ask() for _ in range(4)))
        assert listings(server) <= 4


@pytest.mark.parametrize("model", ["m", None], ids=["named", "the first that is listed"])
async def test_a_default_route_is_listed_with_its_host_before_anybody_has_asked_it(model: str | None) -> None:
    async with ModelServer(models=("m",)) as server, run_with_server(server, model=model) as gateway:
        routes = await gateway.routes()
    assert routes["openai/m"].host == server.base_url.removeprefix("http://").removesuffix("/v1")


async def test_a_default_provider_that_lists_no_models_in_time_is_named_with_its_host() -> None:
    async with ModelServer(rules=[Rule(LISTING, fault=error(500))]) as server:
        host = server.base_url.removeprefix("http://").removesuffix("/v1")
        async with run_with_server(server, model=None) as gateway:
            silent = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest())
        async with run_with_server(server, model="m") as gateway:
            named = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest())
    assert [(each.provider, each.model, each.host) for each in silent.unnamed_defaults] == [
        ("openai", "", host)
    ]
    assert not named.unnamed_defaults


async def test_a_route_that_is_not_there_any_more_is_passed_over_with_an_alarm(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with ModelServer() as server, run_with_server(server) as gateway:
        heard = await gateway.ask(request(routes=["gone/m", "openai/m-1"]))
        assert heard.answer.route == "openai/m-1"
        noted = "".join(capfd.readouterr())
        assert "route needs attention" in noted
        assert "gone/m" in noted
        failure = await failure_of(gateway, request(routes=["gone/m", "away/m"]))
        assert failure.reason == "UNKNOWN_ROUTE"
        assert "'gone/m'" in failure.message
        assert "'away/m'" in failure.message
        assert "openai/MODEL" in failure.message
