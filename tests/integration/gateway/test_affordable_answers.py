"""What a caller can still pay for: the bound that reaches the endpoint, and prices told before a call."""

from pathlib import Path
from typing import Any

import pytest

from parley.gateway.routing.call import Call
from parley.gateway.routing.route import Route
from parley.v1.gateway_pb2 import GenerateRequest
from tests.integration.gateway.harness import (
    Gateway,
    failure_of,
    request,
    routes_file,
    run_gateway,
    run_with_server,
)
from tests.support.model_server import ModelServer

KEYS = {"KEY_1": "sk-first-key-of-this-test"}
LONG = "word " * 20_000


async def bound_that_reached(server: ModelServer, gateway: Gateway, **fields: Any) -> int:
    await gateway.ask(request(**fields))
    asked = server.ledger.calls[-1].body
    return int(asked.get("max_tokens") or asked.get("max_output_tokens") or 0)


async def test_the_smaller_one_of_both_bounds_reaches_the_endpoint() -> None:
    async with ModelServer(answer="wet") as server, run_with_server(server) as gateway:
        assert await bound_that_reached(server, gateway) == 0
        assert await bound_that_reached(server, gateway, affordable_output_tokens=300) == 300
        for one, other in ((200, 300), (300, 200)):
            both = {"max_output_tokens": one, "affordable_output_tokens": other}
            assert await bound_that_reached(server, gateway, **both) == 200


@pytest.mark.parametrize(
    ("wanted", "own", "affordable", "bound"),
    [(0, 0, 0, 0), (0, 250, 300, 250), (0, 250, 100, 100), (400, 250, 300, 300), (0, 0, 300, 300)],
)
def test_a_routes_own_bound_holds_where_more_can_be_afforded(
    wanted: int, own: int, affordable: int, bound: int
) -> None:
    call = Call(GenerateRequest(max_output_tokens=wanted, affordable_output_tokens=affordable))
    assert call.output_tokens_at(Route("p/m", "p", "m", max_output_tokens=own)) == bound


async def test_an_answer_that_ignores_what_can_be_afforded_is_cut_off() -> None:
    async with ModelServer(answer=LONG) as server, run_with_server(server) as gateway:
        answer = (await gateway.ask(request(affordable_output_tokens=100))).answer
        assert answer.truncated
        assert len(answer.text) <= 800
        assert answer.usage.output_tokens <= 200
        free = (await gateway.ask(request(max_output_tokens=100))).answer
        assert len(free.text) > 800


async def test_a_caller_who_comes_back_with_less_left_gets_its_answer() -> None:
    async with ModelServer(answer="wet") as server, run_with_server(server) as gateway:
        await gateway.ask(request(step="s", affordable_output_tokens=300, affordable_input_tokens=900))
        again = await gateway.ask(
            request(step="s", affordable_output_tokens=200, affordable_input_tokens=800)
        )
        assert again.answer.stored
        assert len(server.ledger.calls) == 1


@pytest.mark.parametrize(
    "bound",
    [
        {"affordable_output_tokens": -1},
        {"affordable_output_tokens": 1_000_001},
        {"affordable_input_tokens": -1},
    ],
)
async def test_an_absurd_bound_is_refused(bound: dict[str, Any]) -> None:
    async with ModelServer() as server, run_with_server(server) as gateway:
        refused = await failure_of(gateway, request(**bound))
        assert next(iter(bound)) in str(refused.violations)


async def test_a_listing_tells_what_a_million_tokens_cost(tmp_path: Path) -> None:
    async with ModelServer() as server:
        settings = routes_file(tmp_path, server, extra="    input_price: 0.25\n    output_price: 2\n")
        async with run_gateway(settings, environment=KEYS) as gateway:
            listed = (await gateway.routes())["p1/m"]
            assert (listed.input_price_micros, listed.output_price_micros) == (250_000, 2_000_000)
        async with run_gateway(routes_file(tmp_path, server), environment=KEYS) as gateway:
            listed = (await gateway.routes())["p1/m"]
            assert not listed.HasField("input_price_micros")
