"""An orchestrator is killed at each write and call of a delivery: the receiver gets each one at least once, under one id, in order."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from parley.v1.debate_pb2 import DebateLimits
from parley.v1.hook_pb2 import (
    DELIVERY_STATE_DELIVERED,
    HOOK_EVENT_BUDGET_REACHED,
    HOOK_EVENT_FAILED,
    Delivery,
    HookTarget,
    WebhookTarget,
)
from tests.chaos.crashing import create_debate, name_both_points
from tests.chaos.driver import Clients, call_until_answered
from tests.chaos.harness import ORCHESTRATORS, System
from tests.support.orchestration import until
from tests.support.webhook_receiver import WebhookReceiver, answers, breaks_off, webhook_receiver

_OWNER: Final = ORCHESTRATORS[0]
_DEBATES: Final = 2
_LEASE_SECONDS: Final = 61
"""By so much the clocks are ahead of the next owner: what the dead one had taken is due then."""
_BUDGET: Final = DebateLimits(max_tokens=1)
_EVENTS: Final = (HOOK_EVENT_BUDGET_REACHED, HOOK_EVENT_FAILED)
"""What such a debate comes to, in this order."""
_POINTS: Final = [
    "call.send:1",  # the receiver has answered, and nobody knows
    *(f"insert.deliveries:{number}" for number in range(1, 5)),
    *(f"update.debates.news:{number}" for number in range(1, 5)),
    *(f"update.deliveries:{number}" for number in range(1, 9)),
    *(f"call.send:{number}" for number in range(2, 5)),
]
"""There are at least so many: a debate is marked, its two deliveries are created, the mark goes; each is taken, sent and recorded."""
_CRASHES: Final = [crash for point in _POINTS for crash in reversed(name_both_points(point))]


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with webhook_receiver() as serving:
        yield serving


@pytest.fixture
def clock(system: System, tmp_path: Path) -> Iterator[Path]:
    """One orchestrator alone, whose clock this file sets ahead when it starts again; the others are dead."""
    system.make_ready()
    for name in ORCHESTRATORS:
        system.kill(name)
    yield tmp_path / "clock"
    if system.alive(_OWNER):
        system.kill(_OWNER)


def start(system: System, clock: Path, crash: str = "") -> None:
    variables = {"PARLEY_HOOK_HOSTS": "127.0.0.1", "PARLEY_CHAOS_CLOCK": str(clock)}
    system.start(_OWNER, crash=crash, variables=variables)


async def list_delivered(clients: Clients) -> list[Delivery]:
    listed = clients.client.list_deliveries(state=DELIVERY_STATE_DELIVERED)
    return [each async for each in listed]


async def hold_debate(clients: Clients, name: str) -> str:
    """Hold a debate that has no budget to speak of; return its id."""
    debate = await create_debate(clients, f"delivery-{name}", limits=_BUDGET)
    await clients.watch(debate)
    return debate


async def check_deliveries(
    system: System, clients: Clients, receiver: WebhookReceiver, clock: Path, crash: str
) -> int:
    """Kill the orchestrator at a point of its deliveries, and check what arrives. Return how often something came again."""
    start(system, clock, crash)
    target = HookTarget(webhook=WebhookTarget(url=f"{receiver.url}hook"))
    hook = await call_until_answered(lambda: clients.client.create_hook("ci", target, _EVENTS))
    receiver.secrets["hook"] = hook.secret
    holding = [asyncio.create_task(hold_debate(clients, f"{crash}-{number}")) for number in range(_DEBATES)]
    await asyncio.to_thread(system.died, _OWNER)
    clock.write_text(str(_LEASE_SECONDS))  # noqa: ASYNC240 - a few bytes
    await asyncio.to_thread(start, system, clock)
    debates = await asyncio.gather(*holding)

    async def list_if_all_arrived() -> list[Delivery]:
        found = await call_until_answered(lambda: list_delivered(clients))
        return found if len(found) == _DEBATES * len(_EVENTS) else []

    delivered = await until(list_if_all_arrived, "all are delivered", within=120)
    await clients.client.delete_hook(hook.hook.id)
    told: dict[str, list[int]] = defaultdict(list)
    for each in receiver.got:
        told[each.event["data"]["debateId"]].append(int(each.event["data"]["sequence"]))
    assert set(told) == set(debates)
    assert all(sequences == sorted(sequences) for sequences in told.values()), "none overtakes another"
    assert all(len(set(sequences)) == len(_EVENTS) for sequences in told.values())
    tries = Counter(each.id for each in receiver.got)
    ids = {each.id for each in delivered}
    assert set(tries) == ids
    assert {each.id for each in receiver.taken} == ids
    return tries.total() - len(tries)


@pytest.mark.parametrize("crash", _CRASHES)
async def test_each_delivery_arrives_under_one_id_and_in_order_when_an_orchestrator_is_killed(
    system: System, clients: Clients, receiver: WebhookReceiver, clock: Path, crash: str
) -> None:
    again = await check_deliveries(system, clients, receiver, clock, crash)
    assert again <= _DEBATES, "only what was sent and not recorded is sent again, one of a debate at most"
    if crash.startswith("after:call.send"):
        assert again, "nobody knew that the receiver had it"


@pytest.mark.long
@pytest.mark.parametrize("crash", ["after:update.deliveries:3", "before:call.send:4", "after:call.send:1"])
async def test_a_receiver_in_trouble_gets_each_delivery_too_when_an_orchestrator_is_killed(
    system: System, clients: Clients, receiver: WebhookReceiver, clock: Path, crash: str
) -> None:
    faults = [answers(500), breaks_off, answers(429, Retry_After="1")]
    receiver.faults["hook"] = list(faults)
    again = await check_deliveries(system, clients, receiver, clock, crash)
    assert not receiver.faults["hook"]
    assert len(faults) <= again <= len(faults) + _DEBATES
