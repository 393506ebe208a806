"""What happens when a provider has a bad day."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.gateway.routing.call import Timeouts
from parley.gateway.wire.api import Api
from parley.gateway.wire.openai_endpoint import OpenAIEndpoint
from parley.v1 import gateway_pb2
from tests.integration.gateway.harness import (
    Gateway,
    failure_of,
    paths,
    request,
    routes_file,
    run_gateway,
    run_with_server,
)
from tests.support.manual_clock import ManualClock
from tests.support.model_server import (
    ErrorShape,
    Fault,
    FaultKind,
    Match,
    ModelServer,
    Rule,
    context_overflow,
    error,
    unknown_model,
)

KEYS = {"KEY_1": "sk-first-key-of-this-test", "KEY_2": "sk-second-key-of-this-test"}
HELPED = [
    Fault(FaultKind.DROP_BEFORE_ANY_BYTE),
    Fault(FaultKind.DROP_AFTER_HEADERS),
    Fault(FaultKind.DROP_MID_STREAM),
    Fault(FaultKind.ERROR_MID_STREAM),
    Fault(FaultKind.STALL_MID_STREAM),
    Fault(FaultKind.HANG),
    Fault(FaultKind.WRONG_JSON),
    error(401),
    error(402),
    error(403),
    unknown_model("m"),
    error(404, shape=ErrorShape.HTML),
    error(408),
    error(409),
    error(429),
    error(429, "You exceeded your current quota", code="insufficient_quota"),
    error(500),
    error(502, shape=ErrorShape.HTML),
    error(503),
]
NOT_HELPED = [
    (error(400), "BAD_REQUEST"),
    (error(422), "BAD_REQUEST"),
    (context_overflow(), "CONTEXT_OVERFLOW"),
    (error(400, "the request exceeds the available context size"), "CONTEXT_OVERFLOW"),
]


@asynccontextmanager
async def run_two(
    folder: Path, first: ModelServer, second: ModelServer, clock: ManualClock | None = None
) -> AsyncIterator[Gateway]:
    async with run_gateway(
        routes_file(folder, first, second),
        environment=KEYS,
        clock=clock,
        timeouts=Timeouts(route_attempt_seconds=0.5, first_pause_seconds=0.02),
    ) as gateway:
        yield gateway


def count_reached(server: ModelServer) -> int:
    return len(server.ledger.calls)


@pytest.mark.parametrize("fault", HELPED, ids=lambda fault: fault.name)
async def test_what_another_route_may_help_goes_to_the_next_one_and_counts(
    fault: Fault, tmp_path: Path
) -> None:
    async with (
        ModelServer(rules=[Rule(fault=fault)]) as first,
        ModelServer(answer="from the second") as second,
        run_two(tmp_path, first, second) as gateway,
    ):
        heard = await gateway.ask()
        assert heard.answer.text == "from the second"
        assert heard.answer.route == "p2/m"
        assert [attempt.route for attempt in heard.attempts] == ["p1/m", "p2/m"]
        route = (await gateway.routes())["p1/m"]
        assert route.failures_in_a_row == 1
        assert route.last_failure


@pytest.mark.parametrize(("fault", "reason"), NOT_HELPED, ids=lambda value: getattr(value, "name", value))
async def test_what_no_route_can_help_does_not_go_on(fault: Fault, reason: str, tmp_path: Path) -> None:
    async with (
        ModelServer(rules=[Rule(fault=fault)]) as first,
        ModelServer() as second,
        run_two(tmp_path, first, second) as gateway,
    ):
        failure = await failure_of(gateway)
        assert (failure.code, failure.reason) == (grpc.StatusCode.FAILED_PRECONDITION, reason)
        assert failure.metadata["route"] == "p1/m"
        assert failure.metadata["provider_status"] == str(fault.status)
        assert not second.ledger.calls
        assert (await gateway.routes())["p1/m"].failures_in_a_row == 0


async def test_a_provider_that_is_not_there_is_named_with_its_address() -> None:
    server = ModelServer()
    await server.start()
    await server.stop()
    async with run_with_server(server) as gateway:
        failure = await failure_of(gateway)
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "PROVIDER_UNREACHABLE")
    assert re.search(r"openai/m-1: cannot connect to 127\.0\.0\.1:\d+: connection refused$", failure.message)
    assert "\n" not in failure.message


async def test_a_web_page_in_place_of_an_api_is_nothing_to_wait_for() -> None:
    page = error(200, "Welcome", shape=ErrorShape.HTML)
    async with ModelServer(rules=[Rule(fault=page)]) as server, run_with_server(server) as gateway:
        failure = await failure_of(gateway)
    assert failure.reason == "PROVIDER_UNREACHABLE"
    assert failure.message == "openai/m-1: a web page answers, and no JSON"


def make_rules(fault: Fault) -> list[Rule]:
    return [Rule(Match(path=f"/v1/{path}"), fault=fault) for path in ("responses", "chat/completions")]


async def test_an_api_that_lists_models_and_completes_with_a_page_is_nothing_to_wait_for() -> None:
    rules = make_rules(error(200, "Welcome", shape=ErrorShape.HTML))
    async with ModelServer(rules=rules) as server, run_with_server(server, model="") as gateway:
        failure = await failure_of(gateway)
        assert paths(server)[0] == "/v1/models"
    assert failure.reason == "PROVIDER_UNREACHABLE"


async def test_one_that_lists_the_model_and_has_no_path_to_complete_may_be_starting_behind_a_proxy() -> None:
    missing = make_rules(error(404, "no such path"))
    async with ModelServer(rules=missing) as server, run_with_server(server, model="") as gateway:
        failure = await failure_of(gateway)
        assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "PROVIDER_UNAVAILABLE")
        assert failure.message.endswith(
            "404 no such path; no OpenAI-compatible API answers there, though its list does: "
            "it may be starting behind a proxy, or the path of its base URL is wrong"
        )
        server.rules = []
        assert (await gateway.ask()).answer.text


async def test_one_that_lists_other_models_and_has_no_path_to_complete_is_nothing_to_wait_for() -> None:
    rules = make_rules(error(404, "no such path"))
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest(names=["openai/m-1"]))
        assert paths(server) == ["/v1/models"]
        assert (await failure_of(gateway)).reason == "PROVIDER_UNREACHABLE"


async def test_one_that_answered_before_is_away_and_may_come_back() -> None:
    server = ModelServer()
    await server.start()
    async with run_with_server(server) as gateway:
        await gateway.ask()
        await server.stop()
        failure = await failure_of(gateway)
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "PROVIDER_UNAVAILABLE")


@pytest.mark.parametrize(
    ("status", "said", "reason"),
    [
        (401, "Incorrect API key provided", "PROVIDER_AUTH"),
        (402, "Insufficient credits", "PROVIDER_QUOTA"),
        (404, "model 'm-1' not found", "UNKNOWN_ROUTE"),
        (500, "busy", "NO_ROUTE_AVAILABLE"),
    ],
)
async def test_behind_an_open_breaker_what_has_to_be_mended_keeps_its_name(
    status: int, said: str, reason: str
) -> None:
    async with (
        ModelServer(rules=[Rule(fault=error(status, said))]) as server,
        run_with_server(server) as gateway,
    ):
        for _ in range(3):
            await failure_of(gateway)
        assert await gateway.breaker("openai/m-1") == "OPEN"
        failure = await failure_of(gateway)
    assert failure.reason == reason
    assert "no route lets a call through" in failure.message


async def test_a_refused_key_names_the_route_and_never_the_key() -> None:
    key = "sk-test-0123456789abcdef"
    rules = [Rule(fault=error(401, f"Incorrect API key provided: {key}. Find yours at example.org."))]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        failure = await failure_of(gateway)
        assert (failure.code, failure.reason) == (grpc.StatusCode.PERMISSION_DENIED, "PROVIDER_AUTH")
        assert "openai/m-1: 401 Incorrect API key provided" in failure.message
        assert key not in failure.message
        assert key not in (await gateway.routes())["openai/m-1"].last_failure
        assert len(server.ledger.calls) == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        pytest.param(error(500), "PROVIDER_UNAVAILABLE", id="may come back"),
        pytest.param(Fault(FaultKind.EMPTY_ANSWER), "EMPTY_ANSWER", id="answers without text"),
    ],
)
async def test_a_call_did_not_fail_for_the_key_of_one_route_where_the_other(
    tmp_path: Path, fault: Fault, reason: str
) -> None:
    async with (
        ModelServer(rules=[Rule(fault=fault)]) as first,
        ModelServer(rules=[Rule(fault=error(401))]) as second,
        run_two(tmp_path, first, second) as gateway,
    ):
        failure = await failure_of(gateway)
    assert failure.reason == reason
    assert "p2/m: 401" in failure.message


async def test_while_a_breaker_keeps_one_route_for_later_the_call_did_not_fail_for_the_others_key(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(rules=[Rule(fault=error(503, "overloaded"))]) as first,
        ModelServer(rules=[Rule(fault=error(401))]) as second,
        run_two(tmp_path, first, second, ManualClock()) as gateway,
    ):
        await failure_of(gateway, request(routes=["p1/m"]))
        assert await gateway.breaker("p1/m") == "OPEN"
        failure = await failure_of(gateway)
    assert failure.reason == "NO_ROUTE_AVAILABLE"
    assert "overloaded" in failure.message
    assert "401" in failure.message


async def test_three_failures_in_a_row_open_the_breaker_and_no_more_calls_reach_the_route(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with (
        ModelServer(rules=[Rule(fault=error(500))]) as first,
        ModelServer(answer="fine") as second,
        run_two(tmp_path, first, second, clock) as gateway,
    ):
        for _ in range(8):
            assert (await gateway.ask()).answer.text == "fine"
        assert count_reached(first) == 3
        assert await gateway.breaker("p1/m") == "OPEN"

        clock.advance(60)
        for _ in range(3):
            assert (await gateway.ask()).answer.route == "p2/m"
        assert count_reached(first) == 4

        first.rules = []
        clock.advance(60)
        assert [(await gateway.ask()).answer.route for _ in range(3)] == ["p1/m"] * 3
        assert await gateway.breaker("p1/m") == "CLOSED"


async def test_a_half_open_breaker_lets_one_trial_through_at_a_time(tmp_path: Path) -> None:
    clock = ManualClock()
    async with (
        ModelServer(rules=[Rule(fault=error(500), times=3)]) as first,
        ModelServer() as second,
        run_two(tmp_path, first, second, clock) as gateway,
    ):
        for _ in range(3):
            await gateway.ask()
        clock.advance(60)
        first.reset()
        first.rules = []
        first.latency = 600
        asking = [asyncio.ensure_future(gateway.ask()) for _ in range(6)]
        heard = [await each for each in islice(asyncio.as_completed(asking), 5)]
        assert [each.answer.route for each in heard] == ["p2/m"] * 5
        await first.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
        assert first.ledger.max_in_flight == 1
        (trial,) = (each for each in asking if not each.done())
        trial.cancel()


async def test_with_one_route_the_others_wait_for_the_trial_instead_of_failing() -> None:
    clock = ManualClock()
    rules = [Rule(fault=error(500), times=3)]
    async with (
        ModelServer(rules=rules) as server,
        run_with_server(server, clock=clock, api=Api.CHAT) as gateway,
    ):
        await failure_of(gateway)
        clock.advance(60)
        server.reset()
        server.rules = []
        server.latency = 0.05
        heard = await asyncio.gather(*(gateway.ask() for _ in range(5)))
        assert all(each.answer.text for each in heard)
        assert max(each.answer.queued.ToTimedelta().total_seconds() for each in heard) > 0.04


async def test_an_open_route_without_another_says_when_to_come_back() -> None:
    rules = [Rule(fault=error(503, "overloaded"))]
    async with (
        ModelServer(rules=rules) as server,
        run_with_server(server, clock=ManualClock(), api=Api.CHAT) as gateway,
    ):
        first = await failure_of(gateway)
        assert first.reason == "PROVIDER_UNAVAILABLE"
        assert first.metadata["requests"] == "3"
        second = await failure_of(gateway)
        assert (second.code, second.reason) == (grpc.StatusCode.UNAVAILABLE, "NO_ROUTE_AVAILABLE")
        assert second.retry_after == pytest.approx(60, abs=1)
        assert "openai/m-1 failed with: 503" in second.message
        assert len(server.ledger.calls) == 3


async def test_retry_after_is_honoured_within_the_deadline() -> None:
    rules = [Rule(fault=error(429, retry_after=0.4), times=1)]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        await gateway.ask()
        first, second = server.ledger.calls
        assert 0.39 <= second.started - first.ended < 30


async def test_retry_after_beyond_the_deadline_is_not_waited_for() -> None:
    rules = [Rule(fault=error(429, retry_after=30))]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        failure = await failure_of(gateway, request(timeout=20))
        assert (failure.code, failure.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "PROVIDER_RATE_LIMIT")
        assert failure.retry_after == pytest.approx(30)
        assert len(server.ledger.calls) == 1


async def test_usage_adds_up_over_attempts_that_failed(tmp_path: Path) -> None:
    async with (
        ModelServer(rules=[Rule(fault=Fault(FaultKind.EMPTY_ANSWER))]) as first,
        ModelServer() as second,
        run_two(tmp_path, first, second) as gateway,
    ):
        usage = (await gateway.ask()).answer.usage
        records = (*first.ledger.calls, *second.ledger.calls)
        assert usage.requests == 3, "the first was asked once more"
        assert usage.input_tokens == sum(record.tokens_in for record in records) > 0
        assert not usage.HasField("cost_micros")


async def test_watchers_see_every_route_and_then_each_change(tmp_path: Path) -> None:
    async with (
        ModelServer(rules=[Rule(fault=error(500))]) as first,
        ModelServer() as second,
        run_two(tmp_path, first, second) as gateway,
    ):
        watch = gateway.stub.WatchRoutes(gateway_pb2.WatchRoutesRequest(), timeout=10)
        changes = aiter(watch)
        seen = [(await anext(changes)).route.name for _ in range(2)]
        assert seen == ["p1/m", "p2/m"]
        for _ in range(3):
            await gateway.ask()
        async for response in changes:
            if response.route.breaker == gateway_pb2.BREAKER_STATE_OPEN:
                assert response.route.name == "p1/m"
                assert response.route.HasField("retry_at")
                break
        watch.cancel()


async def test_an_error_that_nobody_foresaw_counts_against_its_route_and_the_next_one_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    complete = OpenAIEndpoint.complete

    async def fail_oddly(self: OpenAIEndpoint, *given: Any, **more: Any) -> Any:
        if self.provider.name == "p1":
            raise UnicodeEncodeError("ascii", "sk-secret-of-this-test", 0, 1, "odd")
        return await complete(self, *given, **more)

    monkeypatch.setattr(OpenAIEndpoint, "complete", fail_oddly)
    async with (
        ModelServer() as first,
        ModelServer(answer="fine") as second,
        run_gateway(
            routes_file(tmp_path, first, second), environment={"KEY_1": "a", "KEY_2": "b"}
        ) as gateway,
    ):
        for _ in range(3):
            assert (await gateway.ask()).answer.text == "fine"
        assert await gateway.breaker("p1/m") == "OPEN"
        failure = await failure_of(gateway, request(routes=["p1/m"]))
    assert failure.reason == "NO_ROUTE_AVAILABLE"
    assert "an unforeseen error: UnicodeEncodeError" in failure.message
    assert "sk-secret" not in failure.message
    log = "".join(capfd.readouterr())
    assert "a route attempt ended in an unforeseen error" in log
    assert "Traceback" in log
