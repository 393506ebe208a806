"""Checkpoints: a person is asked, the debate waits for them, and what they said is recorded once."""

import asyncio
from functools import partial
from typing import Any

import grpc
import pytest

from parley.orchestrator.envelope import Envelope
from parley.orchestrator.events import CheckpointClosed, Concluded
from parley.orchestrator.report import render
from parley.orchestrator.spec import DebateSpec, Limits
from parley.orchestrator.state import fold
from parley.v1 import orchestrator_pb2 as pb
from tests.support.checked_format import AFTER, BEFORE, CHECKED, register
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import (
    Backstage,
    Orchestrator,
    Replica,
    check_log,
    failure_of,
    make_spec,
    until,
)
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture(autouse=True)
def _checked_format(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)


def spec(**fields: Any) -> DebateSpec:
    made = make_spec(2, 1, **fields)
    return DebateSpec(**{**{name: getattr(made, name) for name in made.__slots__}, "format": CHECKED})


def said(events: list[Envelope]) -> tuple[str, ...]:
    (solution,) = [event.payload.solution for event in events if isinstance(event.payload, Concluded)]
    assert solution is not None
    return solution.recommendations


async def test_a_debate_waits_at_a_checkpoint_until_a_person_says_to_go_on(
    stage: Backstage, replica: Replica
) -> None:
    debate = await replica.create(spec())
    state = fold(await stage.has(debate, "checkpoint_opened"))
    assert state.status == "WAITING"
    assert state.waiting is not None
    assert (state.waiting.checkpoint, state.waiting.message) == (BEFORE, "Shall we begin?")
    assert (state.waiting.until - state.updated_at).total_seconds() == 1800
    assert "Waits for a person until 2030-01-01 00:30:00 UTC: Shall we begin?" in render(debate, state)
    assert not stage.gateway.calls
    await replica.wish(debate, "continue")
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.wish(debate, "approve", text="well done", approved=True)
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert said(events) == ("continue: ", "approve: well done True")
    closed = [event.key for event in events if isinstance(event.payload, CheckpointClosed)]
    assert closed == [BEFORE, AFTER]


@pytest.mark.parametrize("wish", ["answer", "guide"])
async def test_an_answer_and_guidance_end_a_checkpoint(stage: Backstage, replica: Replica, wish: str) -> None:
    debate = await replica.create(spec())
    await stage.has(debate, "checkpoint_opened")
    await replica.wish(debate, wish, text="think of the otters")
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.wish(debate, "approve", text="no", approved=False)
    events = await stage.comes_to(debate, "COMPLETED")
    assert said(events) == (f"{wish}: think of the otters", "approve: no False")
    guided = "think of the otters" in stage.gateway.asked("round/1/propose/ada").prompt
    assert guided == (wish == "guide")


async def test_a_debate_nobody_comes_to_pauses_and_asks_again_once_it_is_resumed(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    debate = await replica.create(spec(limits=Limits(checkpoint_seconds=60, total_seconds=30)))
    await stage.has(debate, "checkpoint_opened")
    await clock.sleeping(3)
    clock.advance(60)
    events = await stage.comes_to(debate, "PAUSED")
    assert [event.kind for event in events][-2:] == ["checkpoint_expired", "paused"]
    await replica.wish(debate, "resume")
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.wish(debate, "continue")
    await stage.has(debate, "checkpoint_opened", 3)
    clock.advance(59)
    await replica.wish(debate, "continue")
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert "limit_reached" not in [event.kind for event in events], (
        "time spent waiting for a person is not its own"
    )


async def test_a_debate_paused_at_a_checkpoint_asks_again_once_it_is_resumed(
    stage: Backstage, replica: Replica
) -> None:
    debate = await replica.create(spec())
    await stage.has(debate, "checkpoint_opened")
    await replica.wish(debate, "pause")
    await stage.comes_to(debate, "PAUSED")
    await replica.wish(debate, "resume")
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.wish(debate, "continue")
    await stage.has(debate, "checkpoint_opened", 3)
    await replica.wish(debate, "continue")
    check_log(await stage.comes_to(debate, "COMPLETED"))


async def test_an_answer_given_while_nobody_owned_the_debate_counts(stage: Backstage) -> None:
    async with stage.replica() as one:
        debate = await one.create(spec())
        await stage.has(debate, "checkpoint_opened")
    async with stage.replica(adopt=False) as two:
        await two.wish(debate, "answer", text="yes")
        await stage.has(debate, "checkpoint_opened", 2)
        await two.wish(debate, "answer", text="no")
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert said(events) == ("answer: yes", "answer: no False")


async def test_two_answers_at_once_are_both_recorded_and_the_first_counts(
    stage: Backstage, replica: Replica
) -> None:
    debate = await replica.create(spec())
    await stage.has(debate, "checkpoint_opened")
    hold = stage.gateway.hold("round/1/propose/*")
    await asyncio.gather(*(replica.wish(debate, "answer", text=each) for each in ("one", "two")))
    hold.release()
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.wish(debate, "continue")
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    wishes = [event.payload.text for event in events if event.kind == "intervened"]  # type: ignore[union-attr]
    assert said(events)[0] == f"answer: {wishes[0]}"


async def test_the_last_moment_has_one_winner(stage: Backstage, clock: ManualClock) -> None:
    """A person comes while the time runs out: either they are heard or the debate pauses and asks again."""
    async with stage.replica(clock=clock) as replica:
        for turns in range(12):
            debate = await replica.create(spec(limits=Limits(checkpoint_seconds=60)))
            await stage.has(debate, "checkpoint_opened")
            await asyncio.sleep(0.02)
            coming = asyncio.create_task(replica.wish(debate, "continue"))
            for _ in range(turns * 3):
                await asyncio.sleep(0)
            clock.advance(60)
            await coming
            kinds = await until(partial(_settled, stage, debate), "it goes on or pauses")
            assert ("checkpoint_closed" in kinds) != ("paused" in kinds)
            await replica.wish(debate, "cancel")
            check_log(await stage.comes_to(debate, "CANCELLED"))


async def _settled(stage: Backstage, debate: str) -> list[str] | None:
    kinds = await stage.kinds(debate)
    return kinds if kinds.count("checkpoint_opened") == 2 or "paused" in kinds else None


async def test_wishes_for_a_checkpoint_go_over_the_wire_and_are_refused_where_none_is_open(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("synthesis")
    debate = await orchestrator.create(format=CHECKED)
    found = await orchestrator.status(debate, pb.DEBATE_STATUS_WAITING)
    assert (found.waiting.checkpoint, found.waiting.message) == (BEFORE, "Shall we begin?")
    sequence = await orchestrator.intervene(debate, "go", continue_debate=pb.Continue())
    await hold.reached.wait()
    assert await orchestrator.intervene(debate, "go", continue_debate=pb.Continue()) == sequence
    wishes: list[dict[str, Any]] = [
        {"continue_debate": pb.Continue()},
        {"answer": pb.Answer(text="yes")},
        {"approve": pb.Approve(approved=True)},
    ]
    for wish in wishes:
        failure = await failure_of(orchestrator.intervene(debate, **wish))
        assert (failure.code, failure.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NO_CHECKPOINT")
    failure = await failure_of(orchestrator.intervene(debate, answer=pb.Answer(text=" ")))
    assert [each.field for each in failure.violations] == ["answer.text"]
    hold.release()
    await orchestrator.status(debate, pb.DEBATE_STATUS_WAITING)
    await orchestrator.intervene(debate, approve=pb.Approve(approved=True, text="fine"))
    assert (await orchestrator.watch(debate))[-1].event.kind == "closed"
    found = await orchestrator.get(debate)
    assert list(found.solution.recommendations) == ["continue: ", "approve: fine True"]
    assert not found.HasField("waiting")
    failure = await failure_of(orchestrator.intervene(debate, approve=pb.Approve(approved=True)))
    assert failure.reason == "DEBATE_ENDED"
