"""An owner that stops at any event loses nothing: the next one finishes the debate and asks nothing twice."""

import asyncio
from pathlib import Path

import pytest

from parley.orchestrator import journal
from parley.orchestrator.envelope import Envelope
from parley.orchestrator.events import Concluded, Solution
from parley.orchestrator.spec import DebateSpec
from tests.support.orchestration import Backstage, StoppingLog, backstage, check_log, make_spec, outcomes
from tests.support.scripted_gateway import ScriptedGateway


def scripted() -> ScriptedGateway:
    gateway = ScriptedGateway()
    gateway.fail("round/1/critique/ada/of/bo")
    gateway.fail("round/2/refine/bo")
    return gateway


async def undisturbed(stage: Backstage, spec: DebateSpec) -> list[Envelope]:
    async with stage.replica() as replica:
        events = await stage.comes_to(await replica.create(spec), "COMPLETED")
    check_log(events)
    return events


async def stopped_at(stage: Backstage, spec: DebateSpec, at: int, *, durable: bool) -> list[Envelope]:
    """Run a debate whose first owner stops at an event, and return its events once a second one has closed it."""
    log = StoppingLog(stage.store.log, at, durable=durable)
    async with stage.replica(log=log) as first:
        accepting = asyncio.create_task(first.create(spec))
        async with asyncio.timeout(10):
            await log.stopped.wait()
        (row,) = await first.shop.rows.open()
        accepting.cancel()  # where it stopped at the acceptance itself, its caller waits as well
    debate = row.debate
    before = await stage.events(debate)
    assert len(before) in ((at, at + 1) if durable else (at - 1, at - 2)), "it stopped where it should"
    asked = len(stage.gateway.calls)
    async with stage.replica():
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
