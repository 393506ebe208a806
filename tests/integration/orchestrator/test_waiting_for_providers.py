"""A debate whose providers are away waits for them within its limit, and goes on by itself."""

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.model.times import time_of
from parley.v1.debate_pb2 import DEBATE_STATUS_WAITING
from tests.integration.orchestrator.limited_debates import failure, make_limited_debate
from tests.support.debate_logs import check_log, find_concluded, outcomes
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, Replica, until
from tests.support.scripted_faults import refusal


async def test_providers_that_come_back_are_waited_for_and_the_debate_goes_on_by_itself(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    away = refusal("PROVIDER_UNAVAILABLE", "overloaded")
    for attempt in (1, 2):
        stage.gateway.fail("round/1/propose/bo", away, attempt=attempt)
    debate = await replica.create(make_limited_debate(2))
    await stage.has(debate, "wait_started")
    state = fold(await stage.events(debate))
    assert state.status == DEBATE_STATUS_WAITING
    assert state.HasField("waiting")
    assert (state.waiting.agent_id, state.waiting.reason) == ("bo", "PROVIDER_UNAVAILABLE")
    assert (time_of(state.waiting.until) - time_of(state.update_time)).total_seconds() == 5
    await until(lambda: _has_status(stage, debate, "WAITING"), "its record says so")
    clock.advance(5)
    await stage.has(debate, "wait_started", 2)
    await clock.sleeping(2)
    clock.advance(10)
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert outcomes(events)["round/1/propose/bo", 3].startswith("bo answers")
    assert stage.gateway.steps().count("round/1/propose/ada") == 1


async def test_an_endpoint_where_nothing_ever_answered_is_not_waited_for(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("*", refusal("PROVIDER_UNREACHABLE", "cannot connect"))
    debate = await replica.create(make_limited_debate(2))
    events = await stage.comes_to(debate, "FAILED")
    assert fold(events).failure.reason == "PROVIDER_UNREACHABLE"
    assert "wait_started" not in [each.kind for each in events]


async def test_one_that_is_gone_after_an_answer_of_this_debate_is_waited_for(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.fail("round/1/propose/bo", refusal("PROVIDER_UNREACHABLE", "cannot connect"), attempt=1)
    hold = stage.gateway.hold("round/1/propose/bo")
    debate = await replica.create(make_limited_debate(2))
    await stage.has(debate, "step_succeeded")
    hold.release()
    await stage.has(debate, "wait_started")
    clock.advance(5)
    await stage.comes_to(debate, "COMPLETED")


async def _has_status(stage: Backstage, debate: str, status: str) -> bool:
    return (await stage.record(debate)).status == status


async def test_after_the_limit_of_waiting_the_debate_fails_and_names_agent_and_phase(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.fail("round/1/propose/bo", refusal("PROVIDER_RATE_LIMIT", "too fast"))
    debate = await replica.create(make_limited_debate(2, waiting=12))
    for count, seconds in ((1, 5), (2, 7)):
        await stage.has(debate, "wait_started", count)
        clock.advance(seconds)
    events = await stage.comes_to(debate, "FAILED")
    failed = failure(events)
    assert (failed.agent_id, failed.phase) == ("bo", "round 1 proposal")
    assert failed.reason == "PROVIDER_RATE_LIMIT"
    stage.gateway.mend()
    await replica.intervene(debate, "resume")
    events = await stage.comes_to(debate, "COMPLETED")
    assert outcomes(events)["round/1/propose/bo", 4]


async def test_after_the_limit_of_waiting_for_the_judge_an_agents_work_stands_in_for_the_answer(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.fail("synthesis", refusal("PROVIDER_RATE_LIMIT", "too fast"))
    debate = await replica.create(make_limited_debate(2, waiting=12))
    for count, seconds in ((1, 5), (2, 7)):
        await stage.has(debate, "wait_started", count)
        clock.advance(seconds)
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    folded = fold(events)
    assert folded.outcome.stand_in.reason == "PROVIDER_RATE_LIMIT"
    assert folded.outcome.description.startswith("ada answers round/1/refine/ada")
    assert "synthesis is not waited for any more: too fast" in folded.warnings
    assert outcomes(events)["synthesis", 3], "it was asked again after each wait"


@pytest.mark.parametrize("reason", ["PROVIDER_AUTH", "PROVIDER_QUOTA", "CONTEXT_OVERFLOW"])
async def test_failures_that_do_not_pass_by_themselves_are_not_waited_for(
    stage: Backstage, replica: Replica, reason: str
) -> None:
    stage.gateway.fail("round/1/propose/bo", refusal(reason))
    stage.gateway.fail("round/1/propose/cy", refusal(reason))
    events = await stage.comes_to(await replica.create(make_limited_debate()), "FAILED")
    assert "wait_started" not in [event.kind for event in events]


async def test_of_failures_of_both_kinds_only_those_that_pass_are_tried_again(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.fail("round/1/propose/bo")
    stage.gateway.fail("round/1/propose/cy", refusal("CALL_TIMEOUT"), attempt=1)
    debate = await replica.create(make_limited_debate())
    await stage.has(debate, "wait_started")
    await clock.sleeping(2)
    clock.advance(5)
    await stage.comes_to(debate, "COMPLETED")
    assert stage.gateway.steps().count("round/1/propose/bo") == 1
    assert stage.gateway.steps().count("round/1/propose/cy") == 2


async def test_a_waiting_debate_is_cancelled_at_once(stage: Backstage, replica: Replica) -> None:
    stage.gateway.fail("round/1/propose/*", refusal("NO_ROUTE_AVAILABLE"))
    debate = await replica.create(make_limited_debate())
    await stage.has(debate, "wait_started")
    await replica.intervene(debate, "cancel")
    check_log(await stage.comes_to(debate, "CANCELLED"))


async def test_a_waiting_debate_is_paused_at_once_and_tries_again_when_it_is_resumed(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("round/1/propose/*", refusal("NO_ROUTE_AVAILABLE"), attempt=1)
    debate = await replica.create(make_limited_debate())
    await stage.has(debate, "wait_started")
    await replica.intervene(debate, "pause")
    await stage.comes_to(debate, "PAUSED")
    await replica.intervene(debate, "resume")
    check_log(await stage.comes_to(debate, "COMPLETED"))


async def test_another_owner_waits_for_the_rest_of_the_time(stage: Backstage, clock: ManualClock) -> None:
    stage.gateway.fail("round/1/propose/*", refusal("NO_ROUTE_AVAILABLE"), attempt=1)
    async with stage.replica(clock=clock) as one:
        debate = await one.create(make_limited_debate())
        await stage.has(debate, "wait_started")
    clock.advance(3)
    async with stage.replica(clock=clock):
        await stage.has(debate, "claimed", 2)
        await clock.sleeping(2)
        clock.advance(2)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)


async def test_a_wait_ends_when_the_debates_own_time_is_over(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.fail("round/1/propose/bo", refusal("PROVIDER_UNAVAILABLE"))
    debate = await replica.create(make_limited_debate(2, total=4))
    await stage.has(debate, "wait_started")
    await stage.gateway.wait_for("round/1/propose/*", 2)
    await clock.sleeping(3)  # for its heartbeat, its time limit, and the provider
    clock.advance(4)
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert find_concluded(events).ended_by == "total_timeout"
    assert "ada answers" in stage.gateway.asked("synthesis").prompt
