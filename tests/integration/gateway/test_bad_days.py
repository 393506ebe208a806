"""No provider's bad day becomes ours: dead primaries and mixed faults."""

import asyncio
from pathlib import Path

import grpc
import pytest

from parley.gateway.routing.call import Timeouts
from parley.gateway.wire.api import Api
from parley.orchestrator.engine.budget import is_transient, next_wait
from parley.orchestrator.model.spec import DEFAULT_LIMITS
from parley.orchestrator.model.times import seconds_of
from parley.runtime.errors import from_rpc_error
from tests.integration.gateway.harness import request, routes_file, run_gateway, run_with_server
from tests.integration.gateway.scenarios import DEAD, KEYS, run_mixed_calls
from tests.support.manual_clock import ManualClock
from tests.support.model_server import Fault, Latency, ModelServer, Rule, error


def names(fault: Fault) -> str:
    return fault.name


SECONDS = 30.0
"""Of a whole call: so much that one which comes late to its routes still gives them all the time that a route attempt may take."""
DEFAULTS = Timeouts(route_attempt_seconds=2.0)
"""What a gateway goes by that was told nothing else, but what hangs is given up after two seconds, not after the default minute."""


def count_reached(server: ModelServer) -> int:
    return len(server.ledger.calls) + server.ledger.in_flight


@pytest.mark.parametrize("fault", DEAD, ids=names)
async def test_a_dead_primary_gets_three_calls_and_then_one_a_cooldown_and_no_request_fails(
    fault: Fault, tmp_path: Path
) -> None:
    clock = ManualClock()  # since a default cooldown is a minute
    async with (
        ModelServer(rules=[Rule(fault=fault)]) as first,
        ModelServer(answer="fine") as second,
        run_gateway(
            routes_file(tmp_path, first, second), environment=KEYS, clock=clock, timeouts=DEFAULTS
        ) as gateway,
    ):
        for _ in range(8):
            assert (await gateway.ask(request(timeout=SECONDS))).answer.text == "fine"
        assert count_reached(first) == 3
        for cooldown in range(1, 3):
            clock.advance(60)
            for _ in range(4):
                assert (await gateway.ask(request(timeout=SECONDS))).answer.text == "fine"
            assert count_reached(first) == 3 + cooldown


async def test_callers_with_little_time_take_a_slow_route_from_nobody(tmp_path: Path) -> None:
    async with (
        ModelServer(answer="slow", rules=[Rule(latency=Latency(1.5))]) as first,
        run_gateway(routes_file(tmp_path, first), environment=KEYS, timeouts=Timeouts()) as gateway,
    ):
        for _ in range(4):
            with pytest.raises(grpc.aio.AioRpcError):
                await gateway.ask(request(timeout=1.4))
        assert await gateway.breaker("p1/m") == "CLOSED"
        assert (await gateway.ask(request(timeout=30))).answer.text == "slow"


@pytest.mark.parametrize(
    ("fault", "stored"),
    [
        pytest.param(
            each,
            stored,
            marks=[pytest.mark.long] if stored and each is not DEAD[0] else [],
            id=f"{each.name}-{'stored' if stored else 'unnamed'}",
        )
        for each in DEAD
        for stored in (False, True)
    ],
)
async def test_with_calls_in_flight_a_dead_primary_gets_two_more_than_those_and_then_one_a_cooldown(
    fault: Fault, stored: bool, tmp_path: Path
) -> None:
    clock = ManualClock()
    at_once = 6
    async with (
        ModelServer(rules=[Rule(fault=fault, latency=Latency(0.3))]) as first,
        ModelServer(answer="fine") as second,
        run_gateway(
            routes_file(tmp_path, first, second), environment=KEYS, clock=clock, timeouts=DEFAULTS
        ) as gateway,
    ):
        numbers = iter(range(1000))

        async def ask() -> str:
            number = next(numbers)
            step = f"step/{number}" if stored else None
            return (await gateway.ask(request(f"q{number}", timeout=SECONDS, step=step))).answer.text

        async def ask_at_once() -> set[str]:
            return set(await asyncio.gather(*(ask() for _ in range(at_once))))

        assert await ask() == await ask() == "fine"  # two failures, which do not open it
        assert await ask_at_once() == {"fine"}
        assert first.ledger.max_in_flight <= at_once
        assert count_reached(first) <= at_once + 2
        before = count_reached(first)
        assert await gateway.breaker("p1/m") == "OPEN"
        for cooldown in range(1, 3):
            clock.advance(59.9)
            assert await ask_at_once() == {"fine"}
            assert count_reached(first) == before + cooldown - 1
            clock.advance(0.1)
            assert await ask_at_once() == {"fine"}
            assert count_reached(first) == before + cooldown


async def test_mixed_calls_under_seeded_faults_all_end_in_an_answer_or_a_typed_status(tmp_path: Path) -> None:
    # Few at once and much time: what is tested are the faults, on a machine that does much else.
    outcomes, late = await run_mixed_calls(
        tmp_path,
        calls=400,
        at_once=8,
        seed=7,
        timeouts=Timeouts(route_attempt_seconds=2.0, first_pause_seconds=0.02),
        seconds=(4.0, 12.0),
    )
    assert sum(outcomes.values()) == 400
    assert outcomes["answer"] > 200
    assert not {name for name in outcomes if name in {"INTERNAL", "UNKNOWN", ""}}
    assert late == 0


async def test_half_a_second_of_errors_fails_no_call_of_a_route_alone_and_opens_no_breaker() -> None:
    async with (
        ModelServer(rules=[Rule(fault=error(503))], answer="fine") as server,
        run_with_server(server, timeouts=DEFAULTS, api=Api.CHAT) as gateway,
    ):

        async def ask(number: int) -> str:
            await asyncio.sleep(0.05 * number)  # as agents begin, one after the other
            return (await gateway.ask(request(f"q{number}", timeout=30))).answer.text

        async def mend() -> None:
            await asyncio.sleep(0.5)
            server.rules = []

        *answers, _ = await asyncio.gather(*(ask(number) for number in range(8)), mend())
        assert answers == ["fine"] * 8
        assert await gateway.breaker("openai/m-1") == "CLOSED"


@pytest.mark.parametrize("away", [4, 40, 60, 300])
async def test_a_debate_outlasts_a_restart_of_the_one_server_it_has(away: float) -> None:
    """Agents ask as a debate does that waits for providers, and the route is asked again when its minute is over."""
    clock, limit = ManualClock(), seconds_of(DEFAULT_LIMITS.waiting)
    assert limit >= 60
    async with (
        ModelServer(answer="fine") as server,
        run_with_server(server, clock=clock, api=Api.CHAT) as gateway,
    ):
        await server.stop()

        async def ask(agent: str) -> str:
            try:
                return (await gateway.ask(request(agent, timeout=SECONDS))).answer.text
            except grpc.aio.AioRpcError as error:
                return from_rpc_error(error).reason

        waited = 0.0
        while (said := await asyncio.gather(*map(ask, ("ada", "bo", "cy")))) != ["fine"] * 3:
            assert all(each == "fine" or is_transient(each) for each in said)
            pause = next_wait(waited, limit)
            assert pause, f"the debate gave up after {waited:g} s"
            clock.advance(pause)
            if waited < away <= waited + pause:
                await server.start()
            waited += pause
        assert waited <= away + 60 + 60, "the longest wait, and the breaker's minute"
        assert await gateway.breaker("openai/m-1") == "CLOSED"
