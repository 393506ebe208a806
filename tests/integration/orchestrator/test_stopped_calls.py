"""Calls that are stopped: by a limit, by an owner before, or by a gateway that does not answer any more."""

from pathlib import Path

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.log.usage import add_usage
from parley.runtime.clock import SystemClock
from parley.v1.agent_pb2 import Usage
from parley.v1.event_pb2 import Concluded, LimitReached, Paused, StepFailed, StepSucceeded
from tests.support.debate_logs import check_log, leave_log, outcomes
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import TENANT, Backstage, Replica, backstage, make_debate, make_limits, until
from tests.support.scripted_faults import refusal

LATE = "round/1/critique/bo/of/ada"


async def create_with_two_calls(stage: Backstage, replica: Replica) -> str:
    """Create a debate, and return its id once both of its first calls wait for their answers."""
    stage.gateway.hold("round/1/propose/*")
    debate = await replica.create(make_debate(2, 1))
    await stage.gateway.wait_for("round/1/propose/*", 2)
    await stage.has(debate, "step_succeeded", 1)  # that of the requirements
    return debate


async def test_what_a_call_used_that_a_limit_stopped_counts(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.hold(LATE)
    debate = await replica.create(make_debate(2, 1))
    await stage.has(debate, "step_succeeded", 1 + 2 + 1 + 1 + 1)  # requirements first
    clock.advance(300)
    events = await stage.comes_to(debate, "COMPLETED")
    (failed,) = [event.payload for event in events if isinstance(event.payload, StepFailed)]
    assert failed.usage == Usage(input_tokens=3, cost_micros=5, requests=2)
    answered = len(stage.gateway.calls) - 1
    assert fold(events).usage == Usage(
        input_tokens=10 * answered + 3,
        output_tokens=10 * answered,
        cost_micros=7 * answered + 5,
        requests=answered + 2,
    )


async def test_a_gateway_that_has_stopped_cannot_keep_a_limit_from_being_recorded(
    stage: Backstage, replica: Replica, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.orchestrator.engine.limiter._CALL_END_SECONDS", 0.05)
    stage.gateway.deaf = True
    stage.gateway.hold(LATE)
    debate = await replica.create(make_debate(2, 1))
    await stage.has(debate, "step_succeeded", 1 + 2 + 1 + 1 + 1)  # requirements first
    clock.advance(300)
    events = await stage.comes_to(debate, "COMPLETED")
    assert outcomes(events)[LATE, 1] == "failed: ROUND_TIMEOUT"
    assert stage.gateway.asked(LATE).end == "hung-up"


async def test_an_owner_whose_claim_is_lost_stops_no_call_when_its_time_is_over(stage: Backstage) -> None:
    hold = stage.gateway.hold("round/1/propose/*")
    behind = ManualClock()
    async with stage.replica("one", exclusive=False, clock=behind) as one:
        debate = await one.create(make_debate(2, 1, limits=make_limits(total=10)))
        await stage.gateway.wait_for("round/1/propose/*", 2)
        # What the calls leave in the log: nothing is appended while the other claims.
        await stage.has(debate, "step_started", 3)
        await stage.has(debate, "step_succeeded")
        async with stage.replica("two", exclusive=True, clock=ManualClock()):
            await stage.gateway.wait_for("round/1/propose/*", 4)
            await behind.sleeping(2)
            behind.advance(10)  # its heartbeat, by which it could hear of the other, comes later
            await until(lambda: _owns_nothing(one), "the first one stops")
            assert not stage.gateway.cancelled
            hold.release()
            events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert not any(isinstance(event.payload, LimitReached) for event in events)
    (end,) = [event.payload for event in events if isinstance(event.payload, Concluded)]
    assert end.ended_by == ""


async def _owns_nothing(replica: Replica) -> bool:
    return not replica.runner._owned


@pytest.mark.parametrize("reason", ["CALL_CANCELLED", "ENCRYPTION_KEY_MISSING"])
async def test_a_call_that_an_owner_before_has_stopped_or_a_gateway_could_not_read_is_made_again(
    stage: Backstage, reason: str
) -> None:
    stage.gateway.fail("round/1/propose/bo", refusal(reason, "no outcome"), times=1)
    async with stage.replica() as replica:
        events = await stage.comes_to(await replica.create(make_debate(2, 1)), "COMPLETED")
    check_log(events)
    assert outcomes(events)["round/1/propose/bo", 1].startswith("bo answers")


async def test_a_gateway_that_does_not_answer_in_time_is_no_agents_failure(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.orchestrator.peers.agents._MARGIN_SECONDS", 0.1)
    hold = stage.gateway.hold("round/1/propose/bo")
    async with stage.replica() as replica:
        debate = await replica.create(make_debate(2, 1, limits=make_limits(call=0.2)))
        await stage.gateway.wait_for("round/1/propose/bo", 2)
        hold.release()
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert outcomes(events)["round/1/propose/bo", 1].startswith("bo answers")


STOPPED = Usage(input_tokens=30, output_tokens=4, cost_micros=9, requests=1)


async def test_calls_that_a_pause_stopped_count_once(stage: Backstage) -> None:
    stage.gateway.stopped_usage = lambda _: STOPPED
    hold = stage.gateway.hold("round/1/propose/*")
    async with stage.replica() as replica:
        debate = await replica.create(make_debate(2, 1))
        await stage.gateway.wait_for("round/1/propose/*", 2)
        await stage.has(debate, "step_succeeded", 1)
        before = fold(await stage.events(debate)).usage
        await replica.intervene(debate, "pause", stop_calls=True)
        events = await stage.comes_to(debate, "PAUSED")
    (paused,) = [event.payload for event in events if isinstance(event.payload, Paused)]
    proposals = [(f"round/1/propose/{each}", 1) for each in ("ada", "bo")]
    assert [(each.step, each.attempt) for each in paused.stopped] == proposals
    after = fold(events).usage
    meter = Journal(stage.store.log, SystemClock(), TENANT, debate, events).recorded.meter
    assert meter.tokens == before.input_tokens + before.output_tokens + 2 * 34
    for _ in proposals:
        add_usage(before, STOPPED)
    assert after == before
    hold.release()
    async with stage.replica() as other:  # another owner, for which the step has yet to be made
        await other.intervene(debate, "resume")
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    payloads = [event.payload for event in events]
    answered = sum(isinstance(each, StepSucceeded) and each.HasField("reply") for each in payloads)
    assert fold(events).usage.requests == answered + 2


async def test_a_call_that_is_stopped_again_before_it_was_made_again_counts_once(stage: Backstage) -> None:
    stage.gateway.stopped_usage = lambda _: STOPPED
    async with stage.replica() as replica:
        debate = await create_with_two_calls(stage, replica)
        await replica.intervene(debate, "pause", stop_calls=True)
        once = fold(await stage.comes_to(debate, "PAUSED")).usage
        stage.gateway.hold("*")
        await replica.intervene(debate, "pause", stop_calls=True)
        assert fold(await stage.comes_to(debate, "PAUSED")).usage == once
        await replica.intervene(debate, "cancel")
        assert fold(await stage.comes_to(debate, "CANCELLED")).usage == once
    assert once.requests == 1 + 2


async def test_a_call_that_a_pause_stopped_counts_once_if_its_step_is_late_after_the_resume(
    stage: Backstage, replica: Replica, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.orchestrator.engine.limiter._CALL_END_SECONDS", 60.0)
    stage.gateway.stopped_usage, stage.gateway.deaf = (lambda _: STOPPED), True
    stage.gateway.hold(LATE)
    debate = await replica.create(make_debate(2, 1))
    await stage.has(debate, "step_succeeded", 1 + 2 + 1 + 1 + 1)  # requirements first
    clock.advance(300)
    await stage.has(debate, "limit_reached")  # and the failure waits until the call has ended
    await replica.intervene(debate, "pause", stop_calls=True)
    (paused,) = [
        event.payload for event in await stage.comes_to(debate, "PAUSED") if isinstance(event.payload, Paused)
    ]
    assert [each.step for each in paused.stopped] == [LATE]
    await replica.intervene(debate, "resume")
    events = await stage.comes_to(debate, "COMPLETED")
    assert outcomes(events)[LATE, 1] == "failed: ROUND_TIMEOUT"
    payloads = [event.payload for event in events]
    answered = sum(isinstance(each, StepSucceeded) and each.HasField("reply") for each in payloads)
    assert fold(events).usage.requests == answered + 1


async def test_an_owner_that_takes_over_a_pause_counts_what_it_stopped(
    stage: Backstage, tmp_path: Path
) -> None:
    async with stage.replica() as first:
        debate = await create_with_two_calls(stage, first)
        await first.intervene(debate, "pause", stop_calls=True)
        events = await stage.comes_to(debate, "PAUSED")
    cut = next(place for place, event in enumerate(events) if event.kind == "paused")
    async with backstage(tmp_path / "later") as later:
        later.gateway.stopped_usage = lambda _: STOPPED
        await leave_log(later, events[:cut])
        async with later.replica():
            events = await later.comes_to(debate, "PAUSED")
    (paused,) = [event.payload for event in events if isinstance(event.payload, Paused)]
    assert [each.usage for each in paused.stopped] == [STOPPED, STOPPED]


async def test_answers_that_came_just_before_a_pause_count_when_they_are_read(stage: Backstage) -> None:
    stage.gateway.stopped_usage, stage.gateway.keeps_stopped = (lambda _: STOPPED), True
    async with stage.replica() as replica:
        debate = await create_with_two_calls(stage, replica)
        await replica.intervene(debate, "pause", stop_calls=True)
        events = await stage.comes_to(debate, "PAUSED")
    (paused,) = [event.payload for event in events if isinstance(event.payload, Paused)]
    assert not paused.stopped
    assert fold(events).usage.requests == 1


@pytest.mark.parametrize("keeps_answers", [False, True])
async def test_calls_that_a_cancel_stopped_count(stage: Backstage, keeps_answers: bool) -> None:
    stage.gateway.stopped_usage, stage.gateway.keeps_stopped = (lambda _: STOPPED), keeps_answers
    async with stage.replica() as replica:
        debate = await create_with_two_calls(stage, replica)
        await replica.intervene(debate, "cancel")
        events = await stage.comes_to(debate, "CANCELLED")
    assert fold(events).usage == Usage(input_tokens=70, output_tokens=18, cost_micros=25, requests=3)


async def test_where_nobody_knows_what_a_stopped_call_used_nobody_knows_what_the_debate_cost(
    stage: Backstage,
) -> None:
    async with stage.replica() as replica:
        debate = await create_with_two_calls(stage, replica)
        await replica.intervene(debate, "cancel")
        usage = fold(await stage.comes_to(debate, "CANCELLED")).usage
    assert not usage.HasField("cost_micros")
    assert usage.requests == 3
