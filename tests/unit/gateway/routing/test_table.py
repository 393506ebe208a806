"""The table of routes: what is kept over a reload, and what is forgotten when there are too many."""

import asyncio

import pytest
from msgspec.structs import replace

from parley.gateway.routing import table as routes
from parley.gateway.routing.breaker import BreakerState, RouteBreaker
from parley.gateway.routing.prices import Prices, PublishedPrices
from parley.gateway.routing.queue import Limits
from parley.gateway.routing.route import DefaultRoute, Route
from parley.gateway.routing.table import Offer, RouteTable
from parley.gateway.wire.endpoint import EndpointLimits, ListedModel, Provider
from parley.gateway.wire.openai_endpoint import OpenAIEndpoint
from tests.support.manual_clock import ManualClock
from tests.support.waiting import wait_until


def offer(*configured: Route) -> Offer:
    limits = EndpointLimits(1.0, 1.0, 1.0)
    endpoint = OpenAIEndpoint(Provider("p", "openai-compatible", "http://127.0.0.1:1/v1"), limits)
    return Offer({"p": endpoint}, configured, open_providers=("p",))


def fail(breaker: RouteBreaker, times: int) -> None:
    for _ in range(times):
        permit = breaker.admit()
        assert permit is not None
        breaker.record_failure(permit, "away")


async def test_other_limits_keep_the_calls_in_flight_the_waiting_ones_and_the_rest_that_was_asked_for() -> (
    None
):
    before = offer(Route("p/m", "p", "m", limits=Limits(concurrency=1)))
    table = RouteTable(before, ManualClock())
    live = table.find_known("p/m")
    assert live is not None
    live.queue.rest(30)

    async def wait_for_slot() -> None:
        with await live.queue.take_slot("d", 0):
            pass

    with await live.queue.take_slot("d", 0):
        waiting = [asyncio.create_task(wait_for_slot()) for _ in range(2)]
        await wait_until(lambda: live.queue.waiting >= 2)
        changed = Route("p/m", "p", "m", limits=Limits(concurrency=2))
        table.replace(replace(before, routes=(changed,)))
        now = table.find_known("p/m")
        assert now is not None
        assert now.route.limits.concurrency == 2
        assert now.queue.rests_until == live.queue.rests_until > 0
        assert now.queue.in_flight >= 1
        async with asyncio.timeout(30):
            await asyncio.gather(*waiting)
        assert now.queue.in_flight == 1


async def test_what_a_provider_listed_holds_until_it_is_another_endpoint() -> None:
    before = replace(offer(), defaults=(DefaultRoute("p", None),))
    table = RouteTable(before, ManualClock())
    (unlisted,) = table.defaults()
    assert (unlisted.route.name, unlisted.route.model) == ("p", "")
    assert table.resolve(unlisted) is unlisted
    assert table.take_listed(unlisted, (ListedModel("m"),)).route.name == "p/m"
    table.replace(replace(before, prices=Prices({}, {}, {}, PublishedPrices())))
    assert [live.route.name for live in table.defaults()] == ["p/m"]
    assert table.resolve(unlisted).route.name == "p/m"
    table.replace(replace(before, endpoints=offer().endpoints))
    assert [live.route.model for live in table.defaults()] == [""]
    assert not table.default_names()


async def test_routes_with_open_breakers_are_the_last_to_be_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes, "_MAX_ROUTES", 3)
    table = RouteTable(offer(Route("p/mine", "p", "mine")), ManualClock())
    for name in ("p/dead", "p/fine", "p/one", "p/two", "p/three"):
        live = table.get(name)
        assert live is not None
        if name == "p/dead":
            fail(live.breaker, 3)
    assert [each.route.name for each in table.all_routes()] == ["p/dead", "p/mine", "p/three"]
    dead = table.get("p/dead")
    assert dead is not None
    assert dead.breaker.state is BreakerState.OPEN


async def test_the_table_does_not_grow_where_every_route_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_MAX_ROUTES", 3)
    table = RouteTable(offer(), ManualClock())
    for number in range(20):
        live = table.get(f"p/{number}")
        assert live is not None
        fail(live.breaker, 3)
    assert len(table.all_routes()) == 3
