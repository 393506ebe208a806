"""What replicas tell each other of routes that come and go."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.gateway.routing import breaker_sharing as sharing
from parley.gateway.routing import table as routes
from parley.gateway.routing.breaker import BreakerState
from parley.gateway.routing.breaker_sharing import BreakerSharing
from parley.gateway.routing.route import LiveRoute
from parley.gateway.routing.table import Offer, RouteTable
from parley.gateway.wire.endpoint import EndpointLimits, Provider
from parley.gateway.wire.openai_endpoint import OpenAIEndpoint
from parley.storage.opening import open_store
from parley.storage.ports import Collection, Document, Documents
from tests.support.manual_clock import ManualClock

BREAKERS = Collection("breakers")


class Replica:
    """A table and its sharing, with turns taken one by one."""

    def __init__(self, documents: Documents, clock: ManualClock, name: str) -> None:
        endpoint = OpenAIEndpoint(
            Provider("p", "openai-compatible", "http://127.0.0.1:1/v1"), EndpointLimits(1.0, 1.0, 1.0)
        )
        self.table = RouteTable(Offer({"p": endpoint}, open_providers=("p",)), clock)
        self.sharing = BreakerSharing(documents, self.table, clock, name, trial_seconds=60)

    def route(self, name: str) -> LiveRoute:
        live = self.table.get(name)
        assert live is not None
        return live

    def open(self, name: str) -> None:
        live = self.route(name)
        while live.breaker.state is not BreakerState.OPEN:
            permit = live.breaker.admit()
            assert permit is not None
            live.breaker.record_failure(permit, "away")

    def close(self, name: str) -> None:
        self.route(name).breaker.adopt(BreakerState.CLOSED, "")

    def state(self, name: str) -> BreakerState:
        return self.route(name).breaker.state


class Stage:
    def __init__(self, documents: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
        self.documents = documents
        self.monkeypatch = monkeypatch
        self.clock = ManualClock()
        self.one = Replica(documents, self.clock, "one")
        self.two = Replica(documents, self.clock, "two")

    async def synchronize(self) -> None:
        for each in (self.one, self.two, self.one):
            await each.sharing.synchronize()

    async def stored(self) -> list[Document]:
        return list(await self.documents.find(BREAKERS, {}))


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async with open_store(f"sqlite:///{tmp_path}", "gateway") as store:
        made = Stage(store.documents, monkeypatch)
        for each in (made.one, made.two):
            await each.sharing.prepare()
        yield made


async def test_a_route_that_was_forgotten_and_comes_back_does_not_close_the_breakers_of_others(
    stage: Stage,
) -> None:
    stage.one.open("p/dead")
    await stage.synchronize()
    assert stage.two.state("p/dead") is BreakerState.OPEN
    stage.monkeypatch.setattr(routes, "_MAX_ROUTES", 1)
    stage.one.route("p/other")
    assert stage.one.table.find_known("p/dead") is None
    stage.one.route("p/dead")
    await stage.synchronize()
    assert stage.two.state("p/dead") is BreakerState.OPEN


async def test_a_route_that_came_back_is_heard_when_it_fails_again(stage: Stage) -> None:
    stage.one.open("p/dead")
    await stage.synchronize()
    stage.monkeypatch.setattr(routes, "_MAX_ROUTES", 1)
    stage.one.route("p/other")
    stage.two.close("p/dead")
    await stage.synchronize()
    stage.one.open("p/dead")
    await stage.synchronize()
    assert stage.two.state("p/dead") is BreakerState.OPEN


async def test_names_that_clients_make_up_do_not_fill_the_store(stage: Stage) -> None:
    stage.monkeypatch.setattr(sharing, "_MAX_ROUTES", 8)
    stage.monkeypatch.setattr(routes, "_MAX_ROUTES", 4)
    for number in range(40):
        stage.one.open(f"p/{number}")
        await stage.synchronize()
    assert len(await stage.stored()) <= 8


async def test_what_nobody_uses_is_forgotten_after_an_hour_and_shared_anew_when_it_fails_again(
    stage: Stage,
) -> None:
    stage.one.open("p/dead")
    await stage.synchronize()
    stage.one.close("p/dead")
    await stage.synchronize()
    assert [each.key for each in await stage.stored()] == ["p/dead"]
    stage.clock.advance(3601)
    await stage.synchronize()
    assert not await stage.stored()
    for opener, other in ((stage.one, stage.two), (stage.two, stage.one)):
        opener.open("p/dead")
        await stage.synchronize()
        assert other.state("p/dead") is BreakerState.OPEN
        opener.close("p/dead")
        await stage.synchronize()
        assert other.state("p/dead") is BreakerState.CLOSED


async def test_an_open_breaker_stays_known_as_long_as_its_route_is_used(stage: Stage) -> None:
    stage.one.open("p/dead")
    await stage.synchronize()
    stage.clock.advance(3601)
    await stage.synchronize()
    assert [each.key for each in await stage.stored()] == ["p/dead"]
