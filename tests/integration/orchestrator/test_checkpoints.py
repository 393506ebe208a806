"""Checkpoints: a person is asked, the debate waits for them, and what they said is recorded once."""

import asyncio
from functools import partial
from typing import Any

import grpc
import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.model.times import time_of
from parley.runtime.errors import ParleyError
from parley.v1 import debate_pb2
from parley.v1.debate_pb2 import DEBATE_STATUS_WAITING
from parley.v1.event_pb2 import CheckpointClosed, Intervened
from tests.support.checked_format import (
    AFTER,
    BEFORE,
    CHECKED,
    CHECKED_FORMATS,
    QUESTIONED,
    list_said,
    list_said_in,
    make_checked_debate,
)
from tests.support.debate_logs import check_log
from tests.support.interventions import hear_end
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import (
    Backstage,
    Orchestrator,
    Replica,
    failure_of,
    kind_of,
    make_limits,
    until,
)
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture
def formats() -> Formats:
    return CHECKED_FORMATS


async def test_a_debate_waits_at_a_checkpoint_until_a_person_says_to_go_on(
    stage: Backstage, replica: Replica
) -> None:
    debate = await replica.create(make_checked_debate())
    state = fold(await stage.has(debate, "checkpoint_opened"))
    assert state.status == DEBATE_STATUS_WAITING
    assert state.HasField("waiting")
    assert (state.waiting.checkpoint, state.waiting.message) == (BEFORE, "Shall we begin?")
    assert (time_of(state.waiting.until) - time_of(state.update_time)).total_seconds() == 1800
    assert "Waits for a person until 2030-01-01 00:30:00 UTC: Shall we begin?" in render_report(
        state, CHECKED
    )
    assert not stage.gateway.calls
    await replica.intervene(debate, "continue_debate")
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.intervene(debate, "approve", text="well done", approved=True)
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert list_said_in(events) == ("continue_debate: ", "approve: well done True")
    closed = [event.key for event in events if isinstance(event.payload, CheckpointClosed)]
    assert closed == [BEFORE, AFTER]


@pytest.mark.parametrize(("act", "asked"), [("answer", QUESTIONED), ("guide", CHECKED)])
async def test_an_answer_and_guidance_end_a_checkpoint(
    stage: Backstage, replica: Replica, act: str, asked: Format
) -> None:
    debate = await replica.create(make_checked_debate(asked))
    await stage.has(debate, "checkpoint_opened")
    await replica.intervene(debate, act, text="think of the otters")
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.intervene(debate, "approve", text="no", approved=False)
    events = await stage.comes_to(debate, "COMPLETED")
    assert list_said_in(events) == (f"{act}: think of the otters", "approve: no False")
    guided = "think of the otters" in stage.gateway.asked("round/1/propose/ada").prompt
    assert guided == (act == "guide")


async def test_a_debate_nobody_comes_to_pauses_and_asks_again_once_it_is_resumed(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    debate = await replica.create(make_checked_debate(limits=make_limits(checkpoint=60, total=30)))
    await stage.has(debate, "checkpoint_opened")
    await clock.sleeping(3)
    clock.advance(60)
    events = await stage.comes_to(debate, "PAUSED")
    assert [event.kind for event in events][-2:] == ["checkpoint_expired", "paused"]
    await replica.intervene(debate, "resume")
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.intervene(debate, "continue_debate")
    await stage.has(debate, "checkpoint_opened", 3)
    clock.advance(59)
    await replica.intervene(debate, "approve", approved=True)
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert "limit_reached" not in [event.kind for event in events], (
        "time spent waiting for a person is not its own"
    )


async def test_a_debate_paused_at_a_checkpoint_asks_again_once_it_is_resumed(
    stage: Backstage, replica: Replica
) -> None:
    debate = await replica.create(make_checked_debate())
    await stage.has(debate, "checkpoint_opened")
    await replica.intervene(debate, "pause")
    await stage.comes_to(debate, "PAUSED")
    await replica.intervene(debate, "resume")
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.intervene(debate, "continue_debate")
    await stage.has(debate, "checkpoint_opened", 3)
    await replica.intervene(debate, "approve", approved=True)
    check_log(await stage.comes_to(debate, "COMPLETED"))


async def test_an_answer_given_while_nobody_owned_the_debate_counts(stage: Backstage) -> None:
    async with stage.replica() as one:
        debate = await one.create(make_checked_debate(QUESTIONED))
        await stage.has(debate, "checkpoint_opened")
    async with stage.replica(adopt=False) as two:
        await two.intervene(debate, "answer", text="yes")
        await stage.has(debate, "checkpoint_opened", 2)
        await two.intervene(debate, "approve", text="no")
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert list_said_in(events) == ("answer: yes", "approve: no False")


async def test_of_two_who_guide_at_once_both_are_recorded_and_the_first_closes_the_checkpoint(
    stage: Backstage, replica: Replica
) -> None:
    debate = await replica.create(make_checked_debate())
    await stage.has(debate, "checkpoint_opened")
    hold = stage.gateway.hold("round/1/propose/*")
    await asyncio.gather(*(replica.intervene(debate, "guide", text=each) for each in ("one", "two")))
    hold.release()
    await stage.has(debate, "checkpoint_opened", 2)
    await replica.intervene(debate, "approve", approved=True)
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    first, second, _ = [
        event.payload.intervention for event in events if isinstance(event.payload, Intervened)
    ]
    assert {first.guide.text, second.guide.text} == {"one", "two"}
    assert list_said_in(events)[0] == f"guide: {first.guide.text}"


async def test_of_two_who_answer_at_once_the_second_is_told_that_nothing_is_asked_any_more(
    stage: Backstage, replica: Replica
) -> None:
    debate = await replica.create(make_checked_debate(QUESTIONED))
    await stage.has(debate, "checkpoint_opened")
    stage.gateway.hold("round/1/propose/*")
    answers = [replica.intervene(debate, "answer", text=each) for each in ("one", "two")]
    told = await asyncio.gather(*answers, return_exceptions=True)
    (refusal,) = [each for each in told if isinstance(each, ParleyError)]
    assert refusal.reason == "NO_CHECKPOINT"
    assert (await stage.kinds(debate)).count("intervened") == 1


async def test_the_last_moment_has_one_winner(stage: Backstage, clock: ManualClock) -> None:
    """A person comes while the time runs out: either they are heard or the debate pauses and asks again."""
    async with stage.replica(clock=clock) as replica:
        for turns in range(12):
            debate = await replica.create(make_checked_debate(limits=make_limits(checkpoint=60)))
            await stage.has(debate, "checkpoint_opened")
            await clock.sleeping(2)  # for its heartbeat, and for the person
            coming = asyncio.create_task(replica.intervene(debate, "continue_debate"))
            for _ in range(turns * 3):
                await asyncio.sleep(0)
            clock.advance(60)
            told = await hear_end(coming)
            kinds = await until(partial(_find_settled_kinds, stage, debate), "it goes on or pauses")
            assert ("checkpoint_closed" in kinds) != ("paused" in kinds)
            assert isinstance(told, int) == ("checkpoint_closed" in kinds), "whoever comes too late is told"
            await replica.intervene(debate, "cancel")
            check_log(await stage.comes_to(debate, "CANCELLED"))


async def _find_settled_kinds(stage: Backstage, debate: str) -> list[str] | None:
    kinds = await stage.kinds(debate)
    return kinds if kinds.count("checkpoint_opened") == 2 or "paused" in kinds else None


async def test_interventions_for_a_checkpoint_go_over_the_wire_and_are_refused_where_none_is_open(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("synthesis")
    debate = await orchestrator.create(format=CHECKED.id)
    found = await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_WAITING)
    assert (found.waiting.checkpoint, found.waiting.message) == (BEFORE, "Shall we begin?")
    sequence = await orchestrator.intervene(debate, "go", continue_debate=debate_pb2.Continue())
    await hold.reached.wait()
    assert await orchestrator.intervene(debate, "go", continue_debate=debate_pb2.Continue()) == sequence
    acts: list[dict[str, Any]] = [
        {"continue_debate": debate_pb2.Continue()},
        {"answer": debate_pb2.Answer(text="yes")},
        {"approve": debate_pb2.Approve(approved=True)},
    ]
    for act in acts:
        failure = await failure_of(orchestrator.intervene(debate, **act))
        assert (failure.code, failure.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NO_CHECKPOINT")
    failure = await failure_of(orchestrator.intervene(debate, answer=debate_pb2.Answer(text=" ")))
    assert [each.field for each in failure.violations] == ["intervention.answer.text"]
    hold.release()
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_WAITING)
    await orchestrator.intervene(debate, approve=debate_pb2.Approve(approved=True, text="fine"))
    assert kind_of((await orchestrator.watch(debate))[-1].event) == "closed"
    found = await orchestrator.get(debate)
    assert list_said(found.outcome) == ("continue_debate: ", "approve: fine True")
    assert not found.HasField("waiting")
    failure = await failure_of(orchestrator.intervene(debate, approve=debate_pb2.Approve(approved=True)))
    assert failure.reason == "DEBATE_ENDED"
