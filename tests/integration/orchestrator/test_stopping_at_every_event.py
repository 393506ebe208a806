"""An owner that stops at any event loses nothing: the next one finishes the debate and asks nothing twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from parley.orchestrator import journal
from parley.orchestrator.envelope import Envelope
from parley.orchestrator.events import Concluded, Solution
from parley.orchestrator.rows import Rows
from parley.orchestrator.spec import DebateSpec, Limits
from parley.runtime.clock import Clock
from tests.support.checked_format import CHECKED, person, register
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, StoppingLog, backstage, check_log, make_spec, outcomes
from tests.support.scripted_gateway import ScriptedGateway, refusal


def scripted() -> ScriptedGateway:
    gateway = ScriptedGateway()
    gateway.fail("round/1/critique/ada/of/bo")
    gateway.fail("round/2/refine/bo")
    return gateway


async def undisturbed(stage: Backstage, spec: DebateSpec, clock: Clock | None = None) -> list[Envelope]:
    async with stage.replica(clock=clock) as replica, person(stage, replica):
        events = await stage.comes_to(await replica.create(spec), "COMPLETED")
    check_log(events)
    return events


async def stopped_at(
    stage: Backstage, spec: DebateSpec, at: int, *, durable: bool, clock: Clock | None = None
) -> list[Envelope]:
    """Run a debate whose first owner stops at an event, and return its events once a second one has closed it."""
    log = StoppingLog(stage.store.log, at, durable=durable)
    async with stage.replica(log=log, clock=clock) as first, person(stage, first):
        accepting = asyncio.create_task(first.create(spec))
        async with asyncio.timeout(10):
            await log.stopped.wait()
        (row,) = (await first.shop.rows.open()).owned
        accepting.cancel()  # where it stopped at the acceptance itself, its caller waits as well
    debate = row.debate
    before = await stage.events(debate)
    assert len(before) in ((at, at + 1) if durable else (at - 1, at - 2)), "it stopped where it should"
    asked = len(stage.gateway.calls)
    async with stage.replica(clock=clock) as second, person(stage, second):
        events = await stage.comes_to(debate, "COMPLETED")
    assert events[: len(before)] == before
    done = outcomes(before).keys()
    again = [asked.call for asked in stage.gateway.calls[asked:] if asked.call in done]
    assert not again, "what was recorded is not asked again"
    return events


def solution(events: list[Envelope]) -> Solution | None:
    return next(event.payload.solution for event in events if isinstance(event.payload, Concluded))


@pytest.mark.parametrize(
    ("agents", "durable"),
    [(2, True), (2, False), (3, True)],
    ids=["two agents, after each event", "two agents, before each event", "three agents, after each event"],
)
async def test_a_debate_that_is_stopped_at_any_event_ends_as_if_it_had_not_been(
    agents: int, durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_BATCH", 1)  # every event is a record, and so a place to stop at
    spec = make_spec(agents)
    async with backstage(tmp_path, scripted()) as stage:
        calm = await undisturbed(stage, spec)
        assert sum(end.startswith("failed") for end in outcomes(calm).values()) == 2
        # Events 1 and 2 (creation and claim) are one record; before it is durable nothing was accepted.
        for at in range(2 if durable else 3, len(calm) + 1):
            events = await stopped_at(stage, spec, at, durable=durable)
            check_log(events)
            assert outcomes(events) == outcomes(calm), f"stopped at {at}"
            assert solution(events) == solution(calm), f"stopped at {at}"
            if at < len(calm) or not durable:
                assert events[-1].epoch == 2, f"stopped at {at}"


_QUIET_LOOKS = 6
"""Looks in a row, 20 ms apart, at which nothing had happened: only time is waited for then."""


@asynccontextmanager
async def time_flies(stage: Backstage) -> AsyncIterator[ManualClock]:
    """A clock that moves on whenever nothing else does, so that whatever is waited for by time comes soon."""
    clock = ManualClock()

    async def seen() -> object:
        rows = await Rows(stage.store.documents).open()
        calls = [(asked.call, asked.end) for asked in stage.gateway.calls]
        return calls, [(row.key, row.epoch, len(await stage.events(row.debate))) for row in rows.owned]

    async def move() -> None:
        before, quiet = None, 0
        while True:
            await asyncio.sleep(0.02)
            now = await seen()
            quiet = quiet + 1 if now == before else 0
            before = now
            if quiet and quiet % _QUIET_LOOKS == 0:
                clock.advance(300)

    moving = asyncio.create_task(move())
    try:
        yield clock
    finally:
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)


async def test_so_does_a_debate_with_checkpoints_a_wait_and_a_round_whose_time_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch)
    monkeypatch.setattr(journal, "_BATCH", 1)
    gateway = ScriptedGateway()
    gateway.fail("round/1/propose/bo", refusal("PROVIDER_UNAVAILABLE"), attempt=1)
    gateway.hold("round/1/critique/ada/of/bo")
    spec = replace(make_spec(2, 1, limits=Limits(round_seconds=200)), format=CHECKED)
    async with backstage(tmp_path, gateway) as stage, time_flies(stage) as clock:
        calm = await undisturbed(stage, spec, clock)
        kinds = [event.kind for event in calm]
        assert [kinds.count(each) for each in ("checkpoint_closed", "wait_finished", "limit_reached")] == [
            2,
            1,
            1,
        ]
        for at in range(2, len(calm) + 1):
            events = await stopped_at(stage, spec, at, durable=True, clock=clock)
            check_log(events)
            assert outcomes(events) == outcomes(calm), f"stopped at {at}"
            assert solution(events) == solution(calm), f"stopped at {at}"


async def test_so_does_a_debate_that_its_time_limit_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_BATCH", 1)
    gateway = ScriptedGateway()
    gateway.hold("round/2/propose/bo")
    spec = make_spec(2, 3, limits=Limits(total_seconds=200))
    async with backstage(tmp_path, gateway) as stage, time_flies(stage) as clock:
        calm = await undisturbed(stage, spec, clock)
        (end,) = [event.payload for event in calm if isinstance(event.payload, Concluded)]
        assert end.ended_by == "total_timeout"
        for at in range(2, len(calm) + 1):
            events = await stopped_at(stage, spec, at, durable=True, clock=clock)
            check_log(events)
            assert outcomes(events) == outcomes(calm), f"stopped at {at}"
            assert [each.payload for each in events if isinstance(each.payload, Concluded)] == [end], (
                f"at {at}"
            )
