"""The same for what is written when agents are late or away, when people are waited for, and when calls are stopped."""

import asyncio
import uuid
from collections.abc import Mapping

import pytest
from google.protobuf.duration_pb2 import Duration

from parley.runtime.channel import channel
from parley.v1 import gateway_pb2, gateway_pb2_grpc
from parley.v1.debate_pb2 import DEBATE_STATUS_PAUSED, DebateLimits
from parley.v1.event_pb2 import Event
from parley.v1.panel_pb2 import TERMINATION_RULE_FIXED, Termination
from tests.chaos.crashing import check_all, create_debate, kill_each, name_both_points
from tests.chaos.driver import Clients
from tests.chaos.harness import GATEWAYS, ORCHESTRATORS, System
from tests.support.checked_format import AFTER, BEFORE, CHECKED
from tests.support.orchestration import kind_of

_HANGS = {"median": 30.0}
_SECOND = Duration(seconds=1)
_ROUND = Duration(seconds=4)
"""Far more than those need who answer at once, also where processes wait for a core."""


def _model() -> str:
    """Name a model that only one test asks, so that its breaker is of no account to others."""
    return f"slow-{uuid.uuid4().hex[:8]}"


def _proposals(model: str, **match: int) -> Mapping[str, object]:
    return {"model": model, "prompt": "Write your proposal: your own answer", **match}


@pytest.mark.parametrize(
    "points",
    [name_both_points("append.limit_reached:1"), ("after:call.cancel:1", "after:append.step_failed:1")],
    ids=["limit", "failure"],
)
async def test_who_is_late_is_left_out_once_when_the_owner_is_killed(
    system: System, clients: Clients, points: tuple[str, str]
) -> None:
    model = _model()

    async def debate(owner: str, crash: str) -> None:
        limits = DebateLimits(round=_ROUND)
        made = await create_debate(
            clients, f"late-{crash}", at=owner, agents=3, models={"cy": model}, limits=limits
        )
        await clients.watch(made)

    with system.rules({"match": _proposals(model), "latency": _HANGS}):
        await kill_each(system, points, debate)
        await check_all(clients, "ROUND_TIMEOUT")


async def test_providers_are_waited_for_and_asked_again_when_the_owner_is_killed(
    system: System, clients: Clients
) -> None:
    model = _model()

    async def debate(owner: str, crash: str) -> None:
        limits = DebateLimits(call=_SECOND)
        made = await create_debate(clients, f"wait-{crash}", at=owner, models={"bo": model}, limits=limits)
        await clients.watch(made)

    with system.rules({"match": _proposals(model, occurrence=1), "latency": _HANGS}):
        await kill_each(system, ("before:append.wait_started:1", "after:append.wait_finished:1"), debate)
        await check_all(clients, "CALL_TIMEOUT", "PROVIDER_UNAVAILABLE")


async def test_a_person_is_asked_and_heard_once_when_the_owner_is_killed(
    system: System, clients: Clients
) -> None:
    async def debate(owner: str, crash: str) -> None:
        made = await create_debate(clients, f"person-{crash}", at=owner, format=CHECKED.id)
        await _go_on_twice(clients, made)

    points = "after:append.checkpoint_opened:1", "after:append.checkpoint_closed:1"
    await kill_each(system, points, debate)
    await check_all(clients)


async def test_a_person_who_does_not_come_is_asked_again_later_when_the_owner_is_killed(
    system: System, clients: Clients
) -> None:
    owner, *heirs = ORCHESTRATORS
    limits = DebateLimits(checkpoint=_SECOND)
    for point in name_both_points("append.checkpoint_expired:1"):
        system.make_ready(owner, crash=point)
        for name in heirs:  # a debate that waits has no owner, and any replica may find that nobody came
            system.kill(name)
        made = await create_debate(clients, f"absent-{point}", at=owner, format=CHECKED.id, limits=limits)
        await asyncio.to_thread(system.died, owner)
        system.make_ready()
        await _wait_for_events(clients, made, "paused")
        assert (await clients.intervene(made, "resume")).sequence
        await _go_on_twice(clients, made)
    await check_all(clients)


async def test_a_call_is_made_again_when_its_gateway_is_killed_while_it_says_that_it_lives(
    system: System, clients: Clients
) -> None:
    system.make_ready("gateway-1", crash="before:insert.replicas:1")
    system.restart("gateway-2", crash="after:update.replicas:2")
    with system.rules({"match": {"prompt": "of case-lives"}, "latency": {"median": 0.5}}):
        creating = asyncio.create_task(create_debate(clients, "lives"))
        for name in GATEWAYS:
            await asyncio.to_thread(system.died, name)
            system.start(name)
        await clients.watch(await creating)
    await check_all(clients)


async def test_a_route_without_a_key_is_left_alone_when_its_gateway_is_killed_on_finding_out(
    system: System, clients: Clients
) -> None:
    model = _model()
    system.make_ready("gateway-1", crash="after:insert.breakers:1")
    system.kill("gateway-2")
    refused = {"kind": "error", "status": 401}
    overlaps = {
        "median": 0.2
    }  # calls of one step then count as one failure, and only three rounds have three
    rounds = Termination(rule=TERMINATION_RULE_FIXED)
    with system.rules({"match": {"model": model}, "fault": refused, "latency": overlaps}):
        debate = await create_debate(
            clients, "key", agents=3, rounds=3, models={"cy": model}, termination=rounds
        )
        await asyncio.to_thread(system.died, "gateway-1")
        system.start("gateway-1")
        await clients.watch(debate)
    await check_all(clients, "PROVIDER_AUTH", "NO_ROUTE_AVAILABLE")


@pytest.mark.parametrize(
    ("name", "crash"),
    [
        ("gateway-2", "after:insert.stops:1"),
        ("gateway-1", "before:delete.stops:1"),
    ],
)
async def test_a_call_that_is_stopped_at_another_gateway_is_made_again_when_one_of_both_is_killed(
    system: System, clients: Clients, name: str, crash: str
) -> None:
    model = _model()
    system.make_ready("gateway-1", crash=crash if name == "gateway-1" else "")
    system.kill("gateway-2")
    with system.rules({"match": _proposals(model, occurrence=1), "latency": _HANGS}):
        debate = await create_debate(clients, f"stopped-{crash}", models={"bo": model})
        await _wait_for_events(clients, debate, "step_started", "round/1/propose/bo")
        system.start("gateway-2", crash=crash if name == "gateway-2" else "")
        call = gateway_pb2.CallId(
            tenant="default", debate_id=debate, step="round/1/propose/bo", step_attempt=1
        )
        stopping = asyncio.create_task(_stop_call(system, call))
        await asyncio.to_thread(system.died, name)
        await stopping
        system.start(name)
        await clients.watch(debate)
    await check_all(clients)


async def _stop_call(system: System, call: gateway_pb2.CallId) -> None:
    """Ask the second gateway to stop a call until one of them has done so, or has died of it."""
    async with channel(system.target("gateway-2")) as connection:
        stub = gateway_pb2_grpc.GatewayServiceStub(connection)
        request = gateway_pb2.CancelCallRequest(call_id=call)
        while system.alive("gateway-1") and system.alive("gateway-2"):
            answer = await asyncio.gather(stub.CancelCall(request, timeout=5), return_exceptions=True)
            if isinstance(answer[0], gateway_pb2.CancelCallResponse) and answer[0].was_running:
                return
            await asyncio.sleep(0.05)


async def _go_on_twice(clients: Clients, debate: str) -> None:
    """Come to both checkpoints of a debate, whenever one is open, until it has ended."""
    watching = asyncio.create_task(clients.watch(debate))
    for key, act in ((BEFORE, "continue_debate"), (AFTER, "approve")):
        await _go_on(clients, debate, key, act)
    await watching


async def _go_on(clients: Clients, debate: str, key: str, act: str) -> None:
    """Come to a checkpoint once it is open; where its time ran out on a busy machine, let the debate ask again."""
    async with asyncio.timeout(60):
        while True:
            found = await clients.client.get(debate)
            if found.status == DEBATE_STATUS_PAUSED:
                await clients.intervene(debate, "resume")
            elif found.waiting.checkpoint == key and (await clients.intervene(debate, act)).sequence:
                return
            await asyncio.sleep(0.05)


async def _wait_for_events(
    clients: Clients, debate: str, kind: str, key: str = "", *, count: int = 1
) -> None:
    """Watch a debate until it has so many events of a kind."""
    async with asyncio.timeout(30):
        async for event in clients.client.watch(debate):
            if isinstance(event, Event) and kind_of(event) == kind and key in ("", event.key):
                count -= 1
                if count == 0:
                    return
    raise AssertionError(f"{debate} ended without {kind}")
