"""Bounds of routes, slow endpoints, hedging, prices and a file that changes, over a whole gateway."""

import asyncio
import json
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from parley.gateway.routing.call import Timeouts
from parley.gateway.settings import GatewaySettings
from parley.runtime.errors import ConfigurationError
from parley.v1 import gateway_pb2
from tests.integration.gateway.harness import failure_of, request, routes_file, run_gateway, run_with_server
from tests.support.model_server import Fault, FaultKind, Latency, Match, ModelServer, Outcome, Rule, error
from tests.support.waiting import wait_until

KEYS = {"KEY_1": "sk-first-key-of-this-test", "KEY_2": "sk-second-key-of-this-test"}


def seconds(duration: Any) -> float:
    return float(duration.ToTimedelta().total_seconds())


async def test_calls_wait_for_a_slot_and_say_how_long_and_that_is_no_fault_of_the_route(
    tmp_path: Path,
) -> None:
    async with ModelServer(latency=Latency(0.3)) as server:
        settings = routes_file(tmp_path, server, extra="    concurrency: 2\n")
        async with run_gateway(
            settings, environment=KEYS, timeouts=Timeouts(route_attempt_seconds=1.6)
        ) as gateway:
            heard = await asyncio.gather(*(gateway.ask(request(f"q{n}", step=f"s{n}")) for n in range(12)))
            assert server.ledger.max_in_flight == 2
            assert max(seconds(each.answer.queued) for each in heard) > 1.4
            assert (await gateway.routes())["p1/m"].failures_in_a_row == 0
            assert all(each.answer.usage.requests == 1 for each in heard)


async def test_a_used_up_rate_sends_calls_to_the_next_route_instead_of_failing_them(tmp_path: Path) -> None:
    async with ModelServer(answer="first") as first, ModelServer(answer="second") as second:
        settings = routes_file(tmp_path, second, first, extra="    requests_per_minute: 6\n")
        async with run_gateway(settings, environment=KEYS) as gateway:
            both = request(routes=["p2/m", "p1/m"], timeout=3)
            texts = [(await gateway.ask(both)).answer.text for _ in range(4)]
            assert texts == ["first", "second", "second", "second"]
            assert (await gateway.routes())["p2/m"].failures_in_a_row == 0


async def test_a_full_route_is_waited_for_a_little_while_another_is_free(tmp_path: Path) -> None:
    async with ModelServer(latency=Latency(2.5)) as first, ModelServer(answer="second") as second:
        settings = routes_file(tmp_path, second, first, extra="    concurrency: 1\n")
        async with run_gateway(settings, environment=KEYS) as gateway:
            both = request(routes=["p2/m", "p1/m"], timeout=8)
            heard = await asyncio.gather(*(gateway.ask(both) for _ in range(5)))
            assert sorted(each.answer.route for each in heard) == ["p1/m"] * 4 + ["p2/m"]
            waited = [seconds(each.answer.queued) for each in heard if each.answer.route == "p1/m"]
            assert 0.7 < min(waited) <= max(waited) < 4  # of 8, and not all of them
            # Where nobody else could answer, there is all the time of the call for a slot.
            alone = request(routes=["p2/m"], timeout=8)
            assert {
                each.answer.route for each in await asyncio.gather(*(gateway.ask(alone) for _ in range(2)))
            } == {"p2/m"}


async def test_what_a_call_took_is_counted_from_its_first_attempt(tmp_path: Path) -> None:
    async with ModelServer(latency=Latency(0.4)) as server:
        settings = routes_file(tmp_path, server, extra="    concurrency: 1\n")
        async with run_gateway(settings, environment=KEYS) as gateway:
            began = monotonic()
            heard = await asyncio.gather(*(gateway.ask(request(f"q{n}", step=f"s{n}")) for n in range(4)))
            elapsed = monotonic() - began
            assert max(seconds(each.answer.queued) for each in heard) > 1
            took = [seconds(each.answer.latency) for each in heard]
            assert min(took) > 0.3
            assert sum(took) <= elapsed, "one after the other, and none with the time it waited"


async def test_a_small_debate_is_not_behind_a_large_one(tmp_path: Path) -> None:
    def make_request(debate: str, number: int) -> gateway_pb2.GenerateRequest:
        asked = request(f"{debate} {number}", step=f"s{number}")
        asked.call_id.debate_id = debate
        return asked

    async with ModelServer(rules=[Rule(fault=Fault(FaultKind.HANG), times=1)]) as server:
        settings = routes_file(tmp_path, server, extra="    concurrency: 1\n")
        async with run_gateway(settings, environment=KEYS) as gateway:

            async def is_queued(number: int) -> bool:
                return (await gateway.routes())["p1/m"].queued == number

            holder = asyncio.create_task(gateway.ask(request("the slot")))
            await server.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
            waiting = [
                asyncio.create_task(gateway.ask(make_request("deb-large", number))) for number in range(10)
            ]
            await wait_until(partial(is_queued, 10))
            waiting.append(asyncio.create_task(gateway.ask(make_request("deb-small", 1))))
            await wait_until(partial(is_queued, 11))
            holder.cancel()
            await asyncio.gather(*waiting)
            asked = [each.prompt for each in server.ledger.calls[1:]]
            assert "deb-small" in "".join(asked[:2])


async def test_retry_after_keeps_other_calls_away_too(tmp_path: Path) -> None:
    rules = [Rule(fault=error(429, retry_after=0.6), times=1)]
    async with (
        ModelServer(rules=rules) as first,
        ModelServer(answer="second") as second,
        run_gateway(routes_file(tmp_path, first, second), environment=KEYS) as gateway,
    ):
        for _ in range(3):
            assert (await gateway.ask()).answer.route == "p2/m"
        assert len(first.ledger.calls) == 1
        assert (await gateway.routes())["p1/m"].failures_in_a_row == 1


async def test_with_one_route_a_call_waits_for_as_long_as_another_was_asked_to() -> None:
    rules = [Rule(fault=error(429, retry_after=0.5), times=1)]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        first = asyncio.create_task(gateway.ask())
        await server.ledger.wait_for(lambda ledger: len(ledger.calls) == 1, within=30)
        await asyncio.gather(first, gateway.ask())
        refused, *others = server.ledger.calls
        assert len(others) == 2
        assert min(each.started for each in others) - refused.ended > 0.4


async def test_a_route_that_asked_for_more_time_than_there_is_says_so() -> None:
    rules = [Rule(fault=error(429, retry_after=120))]
    async with ModelServer(rules=rules) as server, run_with_server(server) as gateway:
        await failure_of(gateway)
        failure = await failure_of(gateway)
        assert failure.reason == "NO_ROUTE_AVAILABLE"
        assert "left alone" in failure.message
        assert failure.retry_after == pytest.approx(120, abs=5)
        assert len(server.ledger.calls) == 1


async def test_a_stream_without_a_first_word_is_given_up_and_the_next_route_asked(tmp_path: Path) -> None:
    slow = Latency(3.0, first_token_share=0.9)
    async with ModelServer(latency=slow) as first, ModelServer(answer="second") as second:
        settings = routes_file(tmp_path, first, second, first_token_timeout_seconds=0.3)
        async with run_gateway(settings, environment=KEYS) as gateway:
            assert (await gateway.ask()).answer.route == "p2/m"
            route = (await gateway.routes())["p1/m"]
            assert "no text within 0.3 s" in route.last_failure
            await first.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)


async def test_a_stream_that_speaks_in_time_may_take_its_time() -> None:
    latency = Latency(1.2, first_token_share=0.1)
    async with (
        ModelServer(latency=latency, answer="a b c d e f g h") as server,
        run_with_server(server, first_token_timeout_seconds=0.5) as gateway,
    ):
        assert (await gateway.ask()).answer.usage.requests == 1


async def test_a_stream_that_falls_silent_is_given_up() -> None:
    rules = [Rule(fault=Fault(FaultKind.STALL_MID_STREAM), times=1)]
    async with (
        ModelServer(rules=rules) as server,
        run_with_server(server, idle_timeout_seconds=0.3) as gateway,
    ):
        heard = await gateway.ask()
        assert heard.answer.usage.requests == 2
        assert server.ledger.calls[0].outcome is Outcome.CANCELLED


HEDGING = Timeouts(route_attempt_seconds=15.0, hedge_seconds=0.15)


async def test_a_silent_route_is_hedged_and_the_loser_is_stopped_and_counted(tmp_path: Path) -> None:
    async with ModelServer(latency=Latency(10)) as first, ModelServer(answer="from the second") as second:
        settings = routes_file(tmp_path, first, second)
        async with run_gateway(settings, environment=KEYS, timeouts=HEDGING) as gateway:
            heard = await gateway.ask()
            assert heard.answer.route == "p2/m"
            assert (
                "".join(delta.text for delta in heard.deltas if delta.route_attempt == 2) == "from the second"
            )
            assert heard.answer.usage.requests == 2
            assert heard.answer.usage.input_tokens > second.ledger.calls[0].tokens_in
            await first.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)
            assert first.ledger.calls[0].outcome is Outcome.CANCELLED
            assert (await gateway.routes())["p1/m"].failures_in_a_row == 0


async def test_a_slow_route_that_speaks_before_its_hedge_stays(tmp_path: Path) -> None:
    async with (
        ModelServer(latency=Latency(0.4), answer="from the first") as first,
        ModelServer(latency=Latency(10)) as second,
    ):
        settings = routes_file(tmp_path, first, second)
        async with run_gateway(settings, environment=KEYS, timeouts=HEDGING) as gateway:
            heard = await gateway.ask()
            assert heard.answer.route == "p1/m"
            assert [attempt.route for attempt in heard.attempts] == ["p1/m"]
            assert heard.answer.usage.requests == 2
            await second.ledger.wait_for(lambda ledger: ledger.in_flight == 0, within=30)


async def test_a_structured_answer_that_has_begun_is_not_hedged(tmp_path: Path) -> None:
    schema = gateway_pb2.AnswerSchema(name="x", json_schema='{"type": "object"}')
    begun = Latency(3.0, first_token_share=0.01)
    patient = replace(HEDGING, hedge_seconds=1.5)
    async with ModelServer(latency=begun, answer={"a": "b c d e f"}) as first, ModelServer() as second:
        settings = routes_file(tmp_path, first, second)
        async with run_gateway(settings, environment=KEYS, timeouts=patient) as gateway:
            heard = await gateway.ask(request(schema=schema))
        assert not second.ledger.calls
    assert heard.answer.route == "p1/m"
    assert heard.text() == heard.answer.text


async def test_a_hedge_that_fails_leaves_the_first_to_answer_and_both_failing_is_a_failure(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer(latency=Latency(0.5)) as first,
        ModelServer(rules=[Rule(fault=error(500))]) as second,
    ):
        settings = routes_file(tmp_path, first, second)
        async with run_gateway(settings, environment=KEYS, timeouts=HEDGING) as gateway:
            assert (await gateway.ask()).answer.route == "p1/m"
            first.rules = [Rule(fault=error(500), latency=Latency(0.4))]
            failure = await failure_of(gateway, request(timeout=30))
            assert failure.reason == "PROVIDER_UNAVAILABLE"
            assert "p1/m" in failure.message
            assert "p2/m" in failure.message


async def test_a_hedge_that_speaks_and_breaks_off_does_not_cost_a_healthy_first_its_answer(
    tmp_path: Path,
) -> None:
    breaks_off = Rule(fault=Fault(FaultKind.DROP_MID_STREAM, after_chunks=3))
    async with (
        ModelServer(latency=Latency(1.5), answer="from the first") as first,
        ModelServer(
            rules=[breaks_off], answer="a b c d e f", latency=Latency(1.0, first_token_share=0.1)
        ) as second,
    ):
        settings = routes_file(tmp_path, first, second)
        async with run_gateway(settings, environment=KEYS, timeouts=HEDGING) as gateway:
            heard = await gateway.ask()
            assert heard.answer.route == "p1/m"
            assert len(first.ledger.calls) == 1
            last = heard.attempts[-1]
            assert (last.number, last.route) == (3, "p1/m")
            said = "".join(each.text for each in heard.deltas if each.route_attempt == last.number)
            assert said == "from the first"


async def test_hedging_is_off_by_default(tmp_path: Path) -> None:
    async with (
        ModelServer(latency=Latency(1.0)) as first,
        ModelServer() as second,
        run_gateway(routes_file(tmp_path, first, second), environment=KEYS) as gateway,
    ):
        assert (await gateway.ask()).answer.route == "p1/m"
        assert not second.ledger.calls


async def test_prices_come_from_a_file_and_an_unknown_price_says_unknown(tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"openai/m-1": {"input": 2, "output": 8}}))
    async with ModelServer() as server:
        async with run_with_server(server, prices_file=prices) as gateway:
            usage = (await gateway.ask(request(routes=["openai/m-1-2026-01-31"]))).answer.usage
            assert usage.cost_micros == 2 * usage.input_tokens + 8 * usage.output_tokens
            assert not (await gateway.ask(request(routes=["openai/other"]))).answer.usage.HasField(
                "cost_micros"
            )
        async with run_with_server(server) as gateway:
            assert not (await gateway.ask()).answer.usage.HasField("cost_micros")
        prices.write_text('{"openai/m-1": {"input": -2, "output": 8}}')
        with pytest.raises(ConfigurationError, match=r"PARLEY_PRICES_FILE.*openai/m-1\.input"):
            async with run_with_server(server, prices_file=prices):
                pass


async def test_a_listing_says_of_named_routes_whether_their_price_is_known(tmp_path: Path) -> None:
    path = tmp_path / "agents.yaml"
    path.write_text(
        "providers:\n"
        '  - {name: fast, base_url: "https://api.groq.com/openai/v1"}\n'
        '  - {name: house, base_url: "http://localhost:1/v1"}\n'
        "routes:\n"
        "  - {provider: house, model: cheap, input_price: 1, output_price: 2}\n"
        "  - {provider: house, model: half, input_price: 1}\n"
    )
    names = ["fast/llama-3.3-70b-versatile", "fast/unheard-of", "house/any", "nobody/m"]
    async with run_gateway(GatewaySettings(agents_file=path, local_model="off")) as gateway:
        assert {each.name: each.priced for each in (await gateway.routes()).values()} == {
            "house/cheap": True,
            "house/half": False,
        }
        listed = await gateway.stub.ListRoutes(gateway_pb2.ListRoutesRequest(names=names))
        assert {each.name: each.priced for each in listed.routes} == {
            "fast/llama-3.3-70b-versatile": True,
            "fast/unheard-of": False,
            "house/any": False,
            "house/cheap": True,
            "house/half": False,
        }


async def test_openrouter_and_azure_get_what_they_want(tmp_path: Path) -> None:
    async with ModelServer() as server:
        path = tmp_path / "agents.yaml"
        path.write_text(
            "providers:\n"
            f"  - {{name: router, kind: openrouter, base_url: {server.base_url}, api_key_env: R,\n"
            "     headers: {X-Parley-Title: Debates}, routing: {order: [Fast, Cheap], allow_fallbacks: false}}\n"
            f"  - {{name: azure, kind: azure-openai, base_url: {server.base_url}, api_key_env: A}}\n"
        )
        environment = {"R": "sk-router-key", "A": "azure-key-0123"}
        settings = GatewaySettings(
            agents_file=path, local_model="off", openai_api_key=None, openai_base_url=None
        )
        seen: list[dict[str, str]] = []

        def note(call: Any) -> str:
            seen.append(dict(call.headers))
            return "yes"

        server.rules = [Rule(Match(), answer=note)]
        async with run_gateway(settings, environment=environment) as gateway:
            await gateway.ask(request(routes=["router/a/b"]))
            await gateway.ask(request(routes=["azure/gpt"]))
        router, azure = server.ledger.calls
        assert router.body["provider"] == {"order": ["Fast", "Cheap"], "allow_fallbacks": False}
        assert router.headers["x-parley-title"] == "Debates"
        assert seen[0]["Authorization"] == "Bearer sk-router-key"
        assert seen[1]["api-key"] == "azure-key-0123"
        assert "Authorization" not in seen[1]
        assert "provider" not in azure.body


async def test_a_changed_file_is_taken_over_and_a_bad_one_changes_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(answer="one") as first, ModelServer(answer="two") as second:
        settings = routes_file(tmp_path, first)
        path = tmp_path / "agents.yaml"
        async with run_gateway(settings, environment=KEYS) as gateway:
            assert (await gateway.ask()).answer.text == "one"
            path.write_text("routes:\n  - provider: nobody\n    model: m\n")
            noted = ""

            async def has_complained() -> bool:
                nonlocal noted
                noted += "".join(capfd.readouterr())
                return "unknown provider nobody" in noted

            await wait_until(has_complained)
            assert (await gateway.ask()).answer.text == "one"
            routes_file(tmp_path, second, extra="agents:\n  - role: poet\n")

            async def is_taken_over() -> bool:
                listed = await gateway.stub.ListAgents(gateway_pb2.ListAgentsRequest())
                return [agent.id for agent in listed.agents] == ["judge", "poet"]

            await wait_until(is_taken_over)
            assert (await gateway.ask()).answer.text == "two"


async def test_a_reload_keeps_the_breakers_of_what_stayed_and_the_calls_that_run(tmp_path: Path) -> None:
    async with (
        ModelServer(rules=[Rule(fault=error(500))]) as first,
        ModelServer(latency=Latency(1.5)) as second,
    ):
        settings = routes_file(tmp_path, first, second)
        async with run_gateway(settings, environment=KEYS) as gateway:
            call = asyncio.create_task(gateway.ask())
            await second.ledger.wait_for(lambda ledger: ledger.in_flight == 1, within=30)
            before = (await gateway.routes())["p1/m"].failures_in_a_row
            routes_file(tmp_path, first, extra="agents:\n  - role: poet\n")

            async def is_taken_over() -> bool:
                return "p2/m" not in await gateway.routes()

            await wait_until(is_taken_over)
            assert (await gateway.routes())["p1/m"].failures_in_a_row == before == 1
            assert (await call).answer.route == "p2/m"


async def test_calls_tokens_breakers_and_queues_are_measured(tmp_path: Path) -> None:
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    rules = [Rule(fault=error(500))]
    async with (
        ModelServer(rules=rules) as first,
        ModelServer() as second,
        run_gateway(routes_file(tmp_path, first, second), environment=KEYS) as gateway,
    ):
        heard = [await gateway.ask() for _ in range(4)]
    found = reader.get_metrics_data()
    assert found is not None
    measured = {
        (metric.name, *sorted(dict(point.attributes or {}).items())): getattr(point, "value", None)
        for resource in found.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }
    attempts = "parley.gateway.route_attempts"
    assert measured[attempts, ("outcome", "server error"), ("route", "p1/m")] == 3
    assert measured[attempts, ("outcome", "answered"), ("route", "p2/m")] == 4
    assert measured["parley.gateway.breaker.state", ("route", "p1/m")] == 2
    assert measured["parley.gateway.breaker.state", ("route", "p2/m")] == 0
    output = ("parley.gateway.tokens", ("gen_ai.token.type", "output"), ("route", "p2/m"))
    assert measured[output] == sum(each.answer.usage.output_tokens for each in heard)
    assert ("parley.gateway.queue.duration", ("route", "p2/m")) in measured
