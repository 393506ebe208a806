"""Owners that are killed, or stopped until another has claimed and then continued."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from google.protobuf.duration_pb2 import Duration

from parley.client import ParleyClient
from parley.v1.debate_pb2 import DebateLimits
from parley.v1.event_pb2 import Event
from tests.chaos.checker import Report, check
from tests.chaos.driver import Clients, spec
from tests.chaos.harness import ORCHESTRATORS, System
from tests.support.orchestration import kind_of

_SHOWN = {"claims", "dense", "chain"}
"""The rules that a second writer breaks."""
_DEBATES = 8


@pytest.fixture
def without_fence(system: System) -> Iterator[System]:
    system.make_ready()
    for name in ORCHESTRATORS:
        system.restart(name, fenced=False)
    yield system
    for name in ORCHESTRATORS:
        system.kill(name)


async def test_a_debate_runs_whose_owner_is_killed_right_after_it_was_accepted(
    system: System, clients: Clients
) -> None:
    system.make_ready()
    debate = await clients.create(spec("case-accepted."), "case-accepted.", at="orchestrator-1")
    system.kill("orchestrator-1")
    await clients.watch(debate)
    assert not check(await clients.history()).violations


async def test_an_owner_that_comes_back_after_another_has_claimed_writes_nothing(
    system: System, clients: Clients
) -> None:
    system.make_ready()
    debate = await _outlive_owner(system, clients, "case-fenced.")
    await clients.watch(debate)
    report = check(await clients.history())
    assert not report.violations, "\n".join(map(str, report.violations))


async def test_an_owner_that_comes_back_after_its_time_limit_stops_no_call_of_the_next_one(
    system: System, clients: Clients
) -> None:
    system.make_ready()
    for name in ("orchestrator-2", "orchestrator-3"):
        system.kill(name)
    mark = "case-outlived-limit."
    limits = DebateLimits(total=Duration(seconds=8))
    calls = 2
    slow = {"match": {"prompt": f"of {mark}"}, "latency": {"median": 9.0}, "times": calls}
    with system.rules(slow):
        debate = await clients.create(spec(mark, limits=limits), mark)
        began = time.monotonic()
        await clients.wait_for_calls(calls)
        system.stop("orchestrator-1")
        try:
            await asyncio.sleep(6)  # time without an owner does not count: the next one has as much left
            system.start("orchestrator-2")
            await wait_for_events(system, "orchestrator-2", debate, "claimed", 2)
            await asyncio.sleep(max(began + 8.2 - time.monotonic(), 0))
        finally:
            system.go_on("orchestrator-1")
        await clients.watch(debate)
    history = await clients.history()
    report = check(history)
    assert not report.violations, "\n".join(map(str, report.violations))
    assert [call.outcome for call in history.calls if mark in call.prompt] == ["answered"] * report.calls


async def wait_for_events(system: System, name: str, debate: str, kind: str, count: int) -> None:
    """Watch a debate at one replica until it has so many events of a kind."""
    async with asyncio.timeout(60), ParleyClient(system.target(name)) as client:
        async for event in client.watch(debate):
            count -= isinstance(event, Event) and kind_of(event) == kind
            if count == 0:
                return


async def test_the_checker_notices_when_the_lock_is_taken_out_of_the_log(
    without_fence: System, clients: Clients
) -> None:
    for number in range(_DEBATES):
        await _outlive_owner(without_fence, clients, f"case-unfenced-{number}.")
        report = await _check_until_broken(clients)
        if {violation.rule for violation in report.violations} & _SHOWN:
            return
    pytest.fail("two owners wrote to one log, and the checker saw nothing")


async def _outlive_owner(system: System, clients: Clients, mark: str) -> str:
    """Stop a debate's owner in the middle of its calls until another has claimed, then let it go on."""
    debate = await clients.create(spec(mark, rounds=3), mark, at="orchestrator-1")
    system.stop("orchestrator-1")
    try:
        # Not by the client of all: its stream may go to the one that is stopped.
        await wait_for_events(system, "orchestrator-2", debate, "claimed", 2)
    finally:
        system.go_on("orchestrator-1")
    return debate


async def _check_until_broken(clients: Clients, within: float = 3.0) -> Report:
    ends = time.monotonic() + within
    while True:
        report = check(await clients.history())
        broken = {violation.rule for violation in report.violations}
        if broken & _SHOWN or time.monotonic() > ends:
            return report
        await asyncio.sleep(0.1)
