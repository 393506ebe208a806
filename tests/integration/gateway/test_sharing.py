"""Several gateways over one store: breakers told from one to the others, calls shared and taken over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from parley.gateway.routing.breaker import BreakerPolicy
from parley.gateway.wire.api import Api
from parley.storage.ports import StoreUnavailableError
from parley.storage.sqlite.documents import SqliteDocuments
from parley.v1 import gateway_pb2
from tests.integration.gateway.harness import (
    Gateway,
    failure_of,
    kinds_with,
    request,
    run_gateway,
    settings_for,
)
from tests.support.model_server import Latency, ModelServer, Rule, error
from tests.support.waiting import wait_until

ROUTE = "openai/m-1"


@asynccontextmanager
async def run_several(
    server: ModelServer, folder: Path, count: int = 2, cooldown: float = 60.0
) -> AsyncIterator[list[Gateway]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                run_gateway(
                    settings_for(server, store=f"sqlite:///{folder}", lease_seconds=1.0),
                    policy=BreakerPolicy(cooldown_seconds=cooldown),
                    kinds=kinds_with(api=Api.CHAT),
                )
            )
            for _ in range(count)
        ]


async def is_(gateway: Gateway, state: str) -> bool:
    return ROUTE in await gateway.routes() and await gateway.breaker(ROUTE) == state


async def test_a_breaker_that_opens_at_one_replica_is_open_at_the_others_within_two_seconds(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(rules=[Rule(fault=error(503))]) as server,
        run_several(server, tmp_path, 3) as (one, two, three),
    ):
        await failure_of(one)
        for other in (two, three):
            await wait_until(lambda other=other: is_(other, "OPEN"))  # type: ignore[misc]
        assert len(server.ledger.calls) == 3
        assert (await failure_of(three)).reason == "NO_ROUTE_AVAILABLE"
        assert "503" in (await two.routes())[ROUTE].last_failure
        assert len(server.ledger.calls) == 3


async def test_one_trial_of_all_replicas_is_out_and_its_outcome_is_told(tmp_path: Path) -> None:
    async with (
        ModelServer(rules=[Rule(fault=error(503), times=3)]) as server,
        run_several(server, tmp_path, 3, cooldown=2.5) as gateways,
    ):
        await failure_of(gateways[0])
        for each in gateways:
            await wait_until(lambda each=each: is_(each, "OPEN"))  # type: ignore[misc]
        server.reset()
        server.rules = []
        server.latency = Latency(0.4)

        async def are_ready() -> bool:
            retry = [(await each.routes())[ROUTE].retry_at.ToDatetime(UTC) for each in gateways]
            return max(retry) <= datetime.now(UTC)

        await wait_until(are_ready)
        heard = await asyncio.gather(*(each.ask() for each in gateways))
        assert all(each.answer.text for each in heard)
        first, second, *_ = sorted(server.ledger.calls, key=lambda record: record.started)
        assert second.started >= first.ended - 0.01, "one trial at a time"
        for _ in range(3):
            await asyncio.gather(*(each.ask() for each in gateways))
        for each in gateways:
            await wait_until(lambda each=each: is_(each, "CLOSED"))  # type: ignore[misc]


async def test_without_the_store_every_replica_goes_by_what_it_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail_as_away(*_: object, **__: object) -> None:
        raise StoreUnavailableError("away")

    async with (
        ModelServer(rules=[Rule(fault=error(503), times=3)]) as server,
        run_several(server, tmp_path, 1, cooldown=0.2) as (one,),
    ):
        for method in ("get", "find", "insert", "update"):
            monkeypatch.setattr(SqliteDocuments, method, fail_as_away)
        await failure_of(one)
        assert await is_(one, "OPEN")
        await asyncio.sleep(0.25)
        for _ in range(2):
            assert (await one.ask()).answer.text
        assert await is_(one, "CLOSED")
        failure = await failure_of(one, request(step="s"))
        assert failure.reason == "STORE_UNAVAILABLE"


async def test_callers_of_one_call_at_two_replicas_pay_once_and_a_later_one_gets_what_is_stored(
    tmp_path: Path,
) -> None:
    async with ModelServer(latency=Latency(0.5)) as server, run_several(server, tmp_path) as (one, two):
        asked = request(step="round/1/propose/ada")
        heard = await asyncio.gather(one.ask(asked), two.ask(asked))
        later = await two.ask(asked)
        assert {each.answer.text for each in (*heard, later)} == {heard[0].answer.text}
        assert later.answer.stored
        assert later.answer.usage == heard[0].answer.usage
        assert not later.attempts
        assert len(server.ledger.calls) == 1


async def test_cancel_at_one_replica_stops_a_call_that_runs_at_another(tmp_path: Path) -> None:
    async with ModelServer(latency=Latency(30)) as server, run_several(server, tmp_path) as (one, two):
        asked = request(step="s")
        call = asyncio.create_task(failure_of(one, asked))
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
        cancelled = await two.stub.CancelCall(gateway_pb2.CancelCallRequest(call_id=asked.call_id))
        assert cancelled.was_running
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)
        assert (await call).reason == "CALL_CANCELLED"


async def test_a_caller_that_hung_up_finds_its_answer_when_it_comes_back(tmp_path: Path) -> None:
    async with ModelServer(latency=Latency(0.3)) as server, run_several(server, tmp_path) as (one, two):
        asked = request(step="s")
        call = one.stub.Generate(asked, timeout=20)
        await server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
        call.cancel()
        assert (await two.ask(asked)).answer.text
        assert len(server.ledger.calls) == 1
