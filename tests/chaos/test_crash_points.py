"""A process is killed right before and right after each kind of write and call; its debate completes by itself."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from parley.runtime.channel import channel
from parley.v1.memory_pb2 import RecallRequest
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from parley.v1.panel_pb2 import Termination, TerminationRule
from tests.chaos.crashing import check_all, create_debate, kill_each, name_both_points
from tests.chaos.driver import Clients
from tests.chaos.harness import GATEWAYS, System

_OWNERS = [
    "insert.debates:1",
    "append.debate_created:1",
    "update.debates.opening:1",
    "update.debates.status:1",
    "append.step_started:1",
    "call.recall:1",
    "call.generate:1",
    "append.step_succeeded:1",
    "append.step_succeeded:3",
    "call.group:1",
    "call.assess:1",
    "update.debates.address+alive+heartbeat:1",
    "append.concluded:1",
    "update.debates.status:2",
    "call.ratings:1",
    "call.memory:1",
    "append.closed:1",
    "update.debates.status:3",
    "call.forget:1",
]
_SPECS: Mapping[str, Mapping[str, Any]] = {
    "call.recall:1": {"recall": True},
    "call.assess:1": {
        "rounds": 2,
        "termination": Termination(rule=TerminationRule.TERMINATION_RULE_CONVERGENCE),
    },
    "update.debates.address+alive+heartbeat:1": {"rounds": 3},
}
_GATEWAYS = ["insert.calls:1", "call.model:1", "update.calls.outcome:1"]
_INTERVENTIONS = [
    ("guide", "insert.inbox:1"),
    ("guide", "append.intervened:1"),
    ("guide", "update.inbox.state:1"),
    ("pause", "append.intervened:1"),
    ("pause", "append.paused:1"),
    ("cancel", "append.concluded:1"),
]
_RECORDERS = [("ratings", "append:1"), ("memory", "insert.debates:1")]

_MEMORY = [
    ("memory", "before:vectors.upsert:1"),
    ("orchestrator-1", "after:call.memory:1"),
    ("memory", "after:insert.debates:1"),
    ("memory", "after:vectors.upsert:1"),
    ("memory", "after:update.debates.unfinished:1"),
]

moments = pytest.mark.parametrize("when", ["before", "after"])


@pytest.mark.parametrize("point", _OWNERS)
async def test_a_debate_goes_on_elsewhere_when_its_owner_is_killed(
    system: System, clients: Clients, point: str
) -> None:
    async def debate(owner: str, crash: str) -> None:
        await clients.watch(await create_debate(clients, f"owner-{crash}", at=owner, **_SPECS.get(point, {})))

    await kill_each(system, name_both_points(point), debate)
    await check_all(clients)


@moments
@pytest.mark.parametrize("point", ["append.claimed:1", "update.debates.opening:1"])
async def test_a_debate_goes_on_elsewhere_when_the_one_who_takes_it_over_is_killed(
    system: System, clients: Clients, when: str, point: str
) -> None:
    system.make_ready("orchestrator-1", crash=f"{when}:{point}")
    debate = await create_debate(clients, f"heir-{when}-{point}", at="orchestrator-2", rounds=2)
    system.kill("orchestrator-2")
    system.kill("orchestrator-3")
    await asyncio.to_thread(system.died, "orchestrator-1")
    system.start("orchestrator-3")
    await clients.watch(debate)
    await check_all(clients)


@pytest.mark.parametrize("point", _GATEWAYS)
async def test_a_call_is_made_again_when_its_gateway_is_killed(
    system: System, clients: Clients, point: str
) -> None:
    system.make_ready("gateway-1", crash=f"before:{point}")
    system.restart("gateway-2", crash=f"after:{point}")
    creating = asyncio.create_task(create_debate(clients, f"gateway-{point}", rounds=2))
    for name in GATEWAYS:
        await asyncio.to_thread(system.died, name)
        system.start(name)
    await clients.watch(await creating)
    await check_all(clients)


@moments
@pytest.mark.parametrize(("service", "point"), _RECORDERS)
async def test_what_follows_from_a_debate_is_recorded_once_when_its_service_is_killed(
    system: System, clients: Clients, when: str, service: str, point: str
) -> None:
    system.make_ready(service, crash=f"{when}:{point}")
    debate = await create_debate(clients, f"{service}-{when}-{point}")
    watching = asyncio.create_task(clients.watch(debate))
    await asyncio.to_thread(system.died, service)
    system.start(service)
    await watching
    await check_all(clients)


@pytest.mark.parametrize(("service", "point"), _MEMORY)
async def test_a_debate_is_remembered_once_when_memory_or_its_owner_is_killed(
    system: System, clients: Clients, service: str, point: str
) -> None:
    system.make_ready(service, crash=point)
    debate = await create_debate(clients, f"memory-{service}-{point}", at="orchestrator-1")
    watching = asyncio.create_task(clients.watch(debate))
    await asyncio.to_thread(system.died, service)
    system.start(service)
    await watching
    await check_all(clients)
    async with channel(system.target("memory")) as opened:
        text = "Which way of building it lasts longest?"
        recall = MemoryServiceStub(opened).Recall(RecallRequest(text=text, floor_percent=1, limit=100))
        assert [each.debate.debate_id async for each in recall].count(debate) == 1


@pytest.mark.parametrize(("act", "point"), _INTERVENTIONS)
async def test_an_intervention_is_taken_up_once_when_the_owner_is_killed(
    system: System, clients: Clients, act: str, point: str
) -> None:
    async def debate(owner: str, crash: str) -> None:
        made = await create_debate(clients, f"act-{act}-{crash}", at=owner, rounds=2)
        assert (await clients.intervene(made, act, at=owner)).sequence
        if act == "pause":
            assert (await clients.intervene(made, "resume")).sequence
        await clients.watch(made)

    await kill_each(system, name_both_points(point), debate)
    await check_all(clients)


@pytest.mark.parametrize("crash", [*name_both_points("append.resumed:1"), "before:update.debates.open:1"])
async def test_a_paused_debate_is_resumed_once_when_the_owner_is_killed(
    system: System, clients: Clients, crash: str
) -> None:
    system.make_ready()
    debate = await create_debate(clients, f"resumed-{crash}", rounds=2)
    assert (await clients.intervene(debate, "pause")).sequence
    for name in ("orchestrator-2", "orchestrator-3"):
        system.kill(name)
    system.restart("orchestrator-1", crash=crash)
    resuming = asyncio.create_task(clients.intervene(debate, "resume"))
    await asyncio.to_thread(system.died, "orchestrator-1")
    system.start("orchestrator-2")
    assert (await resuming).sequence
    await clients.watch(debate)
    await check_all(clients)


@moments
async def test_a_debate_goes_on_elsewhere_when_its_owner_is_killed_while_it_gives_it_up(
    system: System, clients: Clients, when: str
) -> None:
    system.make_ready("orchestrator-1", crash=f"{when}:update.debates.address+alive+owner:1")
    with system.rules({"match": {"prompt": "of case-drained"}, "latency": {"median": 0.3}}):
        debate = await create_debate(clients, f"drained-{when}", at="orchestrator-1")
        await asyncio.to_thread(system.terminate, "orchestrator-1")
        system.died("orchestrator-1", 1.0)
        await clients.watch(debate)
    await check_all(clients)
