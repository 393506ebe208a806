"""A process is killed right before and right after each kind of write and call; its debate completes by itself."""

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable

import pytest

from tests.chaos.checker import check
from tests.chaos.driver import Clients, spec
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
    "append.concluded:1",
    "update.debates.status:2",
    "call.ratings:1",
    "call.memory:1",
    "append.closed:1",
    "update.debates.status:3",
]
_GATEWAYS = ["insert.calls:1", "call.model:1", "update.calls.outcome:1"]
_WISHES = [
    ("guide", "insert.inbox:1"),
    ("guide", "append.intervened:1"),
    ("guide", "update.inbox.state:1"),
    ("pause", "append.intervened:1"),
    ("pause", "append.paused:1"),
    ("cancel", "append.concluded:1"),
]
_RECORDERS = [("ratings", "append:1"), ("memory", "insert.debates:1")]

_TRIES = 3

moments = pytest.mark.parametrize("when", ["before", "after"])


@pytest.mark.parametrize("point", _OWNERS)
async def test_a_debate_goes_on_elsewhere_when_its_owner_is_killed(
    system: System, clients: Clients, point: str
) -> None:
    async def debate(owner: str, when: str) -> None:
        await clients.watch(await _created(clients, f"owner-{when}-{point}", at=owner))

    await _each_killed(system, point, debate)
    await _whole(clients)


@moments
@pytest.mark.parametrize("point", ["append.claimed:1", "update.debates.opening:1"])
async def test_a_debate_goes_on_elsewhere_when_the_one_who_takes_it_over_is_killed(
    system: System, clients: Clients, when: str, point: str
) -> None:
    system.make_ready("orchestrator-1", crash=f"{when}:{point}")
    debate = await _created(clients, f"heir-{when}-{point}", at="orchestrator-2", rounds=2)
    system.kill("orchestrator-2")
    system.kill("orchestrator-3")
    await asyncio.to_thread(system.died, "orchestrator-1")
    system.start("orchestrator-3")
    await clients.watch(debate)
    await _whole(clients)


@pytest.mark.parametrize("point", _GATEWAYS)
async def test_a_call_is_made_again_when_its_gateway_is_killed(
    system: System, clients: Clients, point: str
) -> None:
    system.make_ready("gateway-1", crash=f"before:{point}")
    system.restart("gateway-2", crash=f"after:{point}")
    creating = asyncio.create_task(_created(clients, f"gateway-{point}", rounds=2))
    for name in GATEWAYS:
        await asyncio.to_thread(system.died, name)
        system.start(name)
    await clients.watch(await creating)
    await _whole(clients)


@moments
@pytest.mark.parametrize(("service", "point"), _RECORDERS)
async def test_what_follows_from_a_debate_is_recorded_once_when_its_service_is_killed(
    system: System, clients: Clients, when: str, service: str, point: str
) -> None:
    system.make_ready(service, crash=f"{when}:{point}")
    debate = await _created(clients, f"{service}-{when}-{point}")
    watching = asyncio.create_task(clients.watch(debate))
    await asyncio.to_thread(system.died, service)
    system.start(service)
    await watching
    await _whole(clients)


@pytest.mark.parametrize(("wish", "point"), _WISHES)
async def test_a_wish_is_taken_up_once_when_the_owner_is_killed(
    system: System, clients: Clients, wish: str, point: str
) -> None:
    async def debate(owner: str, when: str) -> None:
        made = await _created(clients, f"wish-{wish}-{when}-{point}", at=owner, rounds=2)
        assert (await clients.wish(made, wish, at=owner)).sequence
        if wish == "pause":
            assert (await clients.wish(made, "resume")).sequence
        await clients.watch(made)

    await _each_killed(system, point, debate)
    await _whole(clients)


@moments
async def test_a_paused_debate_is_resumed_once_when_the_owner_is_killed(
    system: System, clients: Clients, when: str
) -> None:
    system.make_ready()
    debate = await _created(clients, f"resumed-{when}", rounds=2)
    assert (await clients.wish(debate, "pause")).sequence
    for name in ("orchestrator-2", "orchestrator-3"):
        system.kill(name)
    system.restart("orchestrator-1", crash=f"{when}:append.resumed:1")
    wishing = asyncio.create_task(clients.wish(debate, "resume"))
    await asyncio.to_thread(system.died, "orchestrator-1")
    system.start("orchestrator-2")
    assert (await wishing).sequence
    await clients.watch(debate)
    await _whole(clients)


async def _created(clients: Clients, name: str, *, at: str | None = None, rounds: int = 1) -> str:
    mark = f"case-{re.sub('[^a-z0-9]', '-', name)}-{uuid.uuid4().hex[:6]}."
    return await clients.create(spec(mark, rounds=rounds, recall="recall" in name), mark, at=at)


async def _each_killed(system: System, point: str, debate: Callable[[str, str], Awaitable[None]]) -> None:
    """Let one owner die before the point and one after it, each in a debate of its own; the third replica is the heir.

    Where a busy machine had a lease run out before the owner came to the point, it gets another debate.
    """
    owners = {"orchestrator-1": "before", "orchestrator-2": "after"}
    system.make_ready()
    for name, when in owners.items():
        system.restart(name, crash=f"{when}:{point}")

    async def until_dead(name: str, when: str) -> None:
        for _ in range(_TRIES):
            await debate(name, when)
            if not system.alive(name):
                break
        await asyncio.to_thread(system.died, name, 1.0)

    async with asyncio.TaskGroup() as tasks:
        for name, when in owners.items():
            tasks.create_task(until_dead(name, when))


async def _whole(clients: Clients) -> None:
    report = check(await clients.history())
    assert not report.violations, "\n".join(map(str, report.violations))
    assert report.events > 5
