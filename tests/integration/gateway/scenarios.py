"""What tests run briefly and benchmarks at length: mixed faults, and a gateway that is killed."""

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

import grpc

from parley.gateway.routing.breaker import BreakerPolicy
from parley.gateway.routing.call import Timeouts
from parley.runtime.errors import from_rpc_error
from tests.integration.gateway.harness import Gateway, request, routes_file, run_gateway
from tests.integration.gateway.processes import ask_until_answered, gateway_process
from tests.support.model_server import Call, Fault, FaultKind, Latency, Match, ModelServer, Rule, error

KEYS: Final = {"KEY_1": "sk-first-key-of-this-test", "KEY_2": "sk-second-key-of-this-test"}
DEAD: Final = (
    error(500),
    error(401),
    error(429),
    Fault(FaultKind.DROP_BEFORE_ANY_BYTE),
    Fault(FaultKind.DROP_MID_STREAM),
    Fault(FaultKind.HANG),
)
SHORT: Final = Timeouts(route_attempt_seconds=0.4, first_pause_seconds=0.02)


async def run_mixed_calls(
    folder: Path,
    *,
    calls: int,
    at_once: int,
    seed: int,
    timeouts: Timeouts = SHORT,
    seconds: tuple[float, float] = (0.5, 2.0),
) -> tuple[Counter[str], int]:
    """How calls ended over two routes that fail in every way now and then, and how many ended after their time.

    A call has one of two numbers of `seconds`. One counts as late after a second more, or half of its own again.
    """
    dice = random.Random(seed)
    faults = [*DEAD, error(400), error(503), Fault(FaultKind.WRONG_JSON), Fault(FaultKind.EMPTY_ANSWER)]

    def rules() -> list[Rule]:
        bad = sorted(dice.sample(range(1, calls), calls // 12))
        return [Rule(Match(call=number), fault=dice.choice(faults)) for number in bad]

    outcomes: Counter[str] = Counter()
    late = 0
    slots = asyncio.Semaphore(at_once)
    policy = BreakerPolicy(cooldown_seconds=0.2)
    loop = asyncio.get_running_loop()

    async def ask_one(gateway: Gateway, number: int) -> None:
        nonlocal late
        given = dice.choice(seconds)
        asked = request(f"question {number}", timeout=given, step=f"s{number}" if number % 2 else None)
        async with slots:
            began = loop.time()
            try:
                await gateway.ask(asked)
                outcomes["answer"] += 1
            except grpc.aio.AioRpcError as failed:
                outcomes[from_rpc_error(failed).reason] += 1
            late += loop.time() - began > given + max(1.0, given / 2)

    async with (
        ModelServer(rules=rules(), latency=Latency(0.005)) as first,
        ModelServer(rules=rules(), latency=Latency(0.005)) as second,
        run_gateway(
            routes_file(folder, first, second), environment=KEYS, timeouts=timeouts, policy=policy
        ) as gateway,
    ):
        await asyncio.gather(*(ask_one(gateway, number) for number in range(calls)))
    return outcomes, late


@dataclass(frozen=True, slots=True)
class Killed:
    """What a kill cost: how often each question was paid for, and which were in flight at the killed gateway.

    `calls` is how many there were, `unanswered` how many had no answer in the end, `unstored` how many of a later
    look were not there already.
    """

    calls: int
    paid: Counter[str]
    at_killed: frozenset[str]
    unanswered: int
    unstored: int

    @property
    def paid_again(self) -> frozenset[str]:
        """The questions that were paid for more than once."""
        return frozenset(question for question, times in self.paid.items() if times > 1)


async def kill_one(store: str, calls: int = 200, at_once: int = 24, which: int = 0) -> Killed:
    """Asks two gateways over one store for so many answers, and kills one, `which`, when a third is there."""
    keys = ("sk-key-of-gateway-a", "sk-key-of-gateway-b")
    asked: list[tuple[str, str, float]] = []

    def answer(call: Call) -> str:
        asked.append((call.prompt.strip(), call.headers["Authorization"], monotonic()))
        return "yes"

    latency = Latency(0.25, sigma=0.4, seed=3)
    async with ModelServer(answer=answer, latency=latency) as server, AsyncExitStack() as stack:
        gateways = [
            await stack.enter_async_context(gateway_process(server.base_url, store, key, lease_seconds="1.5"))
            for key in keys
        ]
        slots = asyncio.Semaphore(at_once)

        async def ask(number: int) -> str:
            async with slots:
                wanted = request(f"What of number {number}?", step=f"step/{number}")
                return (await ask_until_answered(gateways, wanted, number)).text

        asking = [asyncio.create_task(ask(number)) for number in range(calls)]
        await server.ledger.wait_for(lambda ledger: len(ledger.calls) >= calls // 3, within=60)
        # An answer that came in the moment before the kill may not have been stored yet.
        just_now = monotonic() - 0.5
        at_killed = {
            call.prompt.strip()
            for call in server.ledger.open_calls
            if call.headers["Authorization"].endswith(keys[which])
        }
        await gateways[which].kill()
        at_killed |= {record.prompt.strip() for record in server.ledger.calls if record.ended > just_now} & {
            question for question, key, _ in asked if key.endswith(keys[which])
        }
        texts = await asyncio.gather(*asking)
        at_killed |= {
            question for question, key, when in asked if key.endswith(keys[which]) and when > just_now
        }
        again = [
            ask_until_answered(
                [gateways[1 - which]], request(f"What of number {number}?", step=f"step/{number}"), 0
            )
            for number in range(0, calls, 10)
        ]
        unstored = sum(not each.stored for each in await asyncio.gather(*again))
        paid = Counter(record.prompt.strip() for record in server.ledger.calls)
    return Killed(calls, paid, frozenset(at_killed), sum(text != "yes" for text in texts), unstored)
