"""Limits of time, tokens and money: what is late is left out, and what must end ends with the best there is."""

import pytest

from parley.cli.terminal.account import summary_line
from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.panel import V1
from parley.orchestrator.log.envelope import Envelope
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import (
    STOP_REASON_COST_BUDGET,
    STOP_REASON_TOKEN_BUDGET,
    STOP_REASON_TOTAL_TIMEOUT,
    StopReason,
)
from parley.v1.event_pb2 import LimitReached, RoundsEnded
from tests.integration.orchestrator.limited_debates import failure, make_limited_debate
from tests.support.debate_logs import check_log, find_concluded, outcomes
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, Replica, make_debate
from tests.support.scripted_answers import answer_text


def list_limits_reached(events: list[Envelope]) -> list[LimitReached]:
    return [event.payload for event in events if isinstance(event.payload, LimitReached)]


def list_failed_steps(events: list[Envelope], reason: str) -> set[str]:
    return {step for (step, _), end in outcomes(events).items() if end == f"failed: {reason}"}


def assert_says_what_ended_it(
    events: list[Envelope], reason: "StopReason.ValueType", why: str, in_few_words: str
) -> None:
    """The log, the debate, its report, and the line below the answer, all say which limit ended the rounds."""
    (ended,) = [event.payload for event in events if isinstance(event.payload, RoundsEnded)]
    assert (ended.reason, ended.explanation) == (reason, why)
    debate = fold(events)
    assert (debate.stop_reason, debate.stop_explanation) == (reason, why)
    assert why in render_report(debate, V1)
    assert in_few_words in summary_line(debate).split(" · ")


async def test_whoever_is_late_for_a_round_is_left_out_and_the_rest_goes_on(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.hold("round/1/critique/cy/of/*")
    debate = await replica.create(make_limited_debate())
    await stage.has(
        debate, "step_succeeded", 3 + 4 + 1 + 1 + 1
    )  # with the vote, what is required, and cy's refinement
    clock.advance(299)
    await clock.sleeping(2)  # its heartbeat woke and sleeps again; a limit would be recorded before it does
    assert not list_limits_reached(await stage.events(debate))
    clock.advance(1)
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    cut = {"round/1/critique/cy/of/ada", "round/1/critique/cy/of/bo"}
    assert list_failed_steps(events, "ROUND_TIMEOUT") == cut
    assert {step for step, _ in stage.gateway.cancelled} == cut
    assert len(stage.gateway.steps("round/1/refine/*")) == 3
    assert [(each.limit, each.round, each.used) for each in list_limits_reached(events)] == [
        ("round_timeout", 1, 300)
    ]
    assert find_concluded(events).ended_by == ""


async def test_a_round_that_hangs_again_after_its_limit_is_given_as_long_once_more(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.hold("round/1/critique/bo/of/ada")
    stage.gateway.hold("round/1/refine/ada")
    debate = await replica.create(make_limited_debate(3))
    await stage.has(debate, "step_succeeded", 3 + 5 + 1 + 1 + 2)
    clock.advance(300)
    await stage.gateway.wait_for("round/1/refine/ada")
    await clock.sleeping(2)
    clock.advance(300)
    events = await stage.comes_to(debate, "COMPLETED")
    assert list_failed_steps(events, "ROUND_TIMEOUT") == {"round/1/critique/bo/of/ada", "round/1/refine/ada"}
    assert [each.limit for each in list_limits_reached(events)] == ["round_timeout"] * 2


async def test_a_round_without_enough_proposals_in_time_fails_and_a_resumed_one_has_its_time_anew(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    hold = stage.gateway.hold("round/1/propose/bo")
    debate = await replica.create(make_limited_debate(2))
    await stage.has(debate, "step_succeeded", 1 + 1)
    await hold.reached.wait()
    clock.advance(300)
    events = await stage.comes_to(debate, "FAILED")
    failed = failure(events)
    assert (failed.reason, failed.agent_id, failed.phase) == ("ROUND_TIMEOUT", "bo", "round 1 proposal")
    await replica.intervene(debate, "resume")
    await stage.gateway.wait_for("round/1/propose/bo", 2)
    clock.advance(299)
    hold.release()
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert outcomes(events)["round/1/propose/bo", 2].startswith("bo answers")


@pytest.mark.parametrize("stop_calls", [True, False])
async def test_time_paused_does_not_count(
    stage: Backstage, replica: Replica, clock: ManualClock, stop_calls: bool
) -> None:
    slow = stage.gateway.hold("round/1/refine/*")
    debate = await replica.create(make_limited_debate(2, total=1000))
    await stage.gateway.wait_for("round/1/refine/*", 2)
    clock.advance(200)
    await replica.intervene(debate, "pause", stop_calls=stop_calls)
    if not stop_calls:
        clock.advance(5000)  # the calls in flight are waited for meanwhile
        slow.release()
    await stage.comes_to(debate, "PAUSED")
    clock.advance(10_000)
    again = stage.gateway.hold("synthesis" if not stop_calls else "round/1/critique/none")
    await replica.intervene(debate, "resume")
    if stop_calls:
        await stage.gateway.wait_for("round/1/refine/*", 4)
        clock.advance(99)
        slow.release()
    else:
        await again.reached.wait()
        again.release()
    events = await stage.comes_to(debate, "COMPLETED")
    assert not list_limits_reached(events)


async def test_time_without_an_owner_does_not_count_and_an_owners_time_before_does(
    stage: Backstage, clock: ManualClock
) -> None:
    stage.gateway.hold("round/1/critique/bo/of/ada")
    async with stage.replica(clock=clock) as one:
        debate = await one.create(make_limited_debate(2))
        await stage.has(debate, "step_succeeded", 2 + 1)
        clock.advance(200)
        await one.intervene(debate, "guide", text="be brief")  # what an owner did is known by its events
    clock.advance(10_000)
    async with stage.replica(clock=clock):
        await stage.gateway.wait_for("round/1/critique/bo/of/ada", 2)
        await stage.has(debate, "step_succeeded", 2 + 1 + 1 + 1 + 1)
        clock.advance(99)
        await clock.sleeping(2)  # as above
        assert not list_limits_reached(await stage.events(debate))
        clock.advance(1)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert list_failed_steps(events, "ROUND_TIMEOUT") == {"round/1/critique/bo/of/ada"}


async def test_a_debate_whose_time_is_over_ends_with_an_answer_from_what_is_there(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.hold("round/2/propose/ada")
    debate = await replica.create(make_limited_debate(3, 4, total=250))
    await stage.gateway.wait_for("round/2/critique/*", 4)
    await stage.has(debate, "step_succeeded", 12 + 1 + 1 + 2 + 4 + 2)
    clock.advance(250)
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert find_concluded(events).ended_by == "total_timeout"
    assert find_concluded(events).HasField("outcome")
    assert list_failed_steps(events, "TOTAL_TIMEOUT") == {"round/2/propose/ada"}
    assert not stage.gateway.steps("round/3/*")
    prompt = stage.gateway.asked("synthesis").prompt
    assert "bo answers round/2/propose/bo" in prompt
    assert "ada answers round/1/refine/ada" in prompt
    state = fold(events)
    assert state.ended_by == "total_timeout"
    assert "Ended early: its time limit was reached" in render_report(state, V1)
    why = "the debate's time limit was reached in round 2"
    assert_says_what_ended_it(events, STOP_REASON_TOTAL_TIMEOUT, why, "ended by its time limit")
    assert f"They ended early: {why}." in prompt


async def test_a_debate_whose_time_is_over_before_any_proposal_stands_fails_and_may_be_resumed(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    hold = stage.gateway.hold("round/1/propose/*")
    debate = await replica.create(make_limited_debate(2, total=60))
    await stage.gateway.wait_for("round/1/propose/*", 2)
    clock.advance(60)
    events = await stage.comes_to(debate, "FAILED")
    failed = failure(events)
    assert (failed.reason, failed.phase) == ("TOTAL_TIMEOUT", "round 1 proposal")
    hold.release()
    await replica.intervene(debate, "resume")
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert find_concluded(events).ended_by == ""
    assert outcomes(events)["round/1/propose/ada", 2].startswith("ada answers")


async def test_an_answer_that_is_being_written_is_waited_for(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    hold = stage.gateway.hold("synthesis")
    debate = await replica.create(make_limited_debate(2, total=60))
    await hold.reached.wait()
    clock.advance(80)
    hold.release()
    events = await stage.comes_to(debate, "COMPLETED")
    assert not list_limits_reached(events)


async def test_a_budget_of_tokens_lets_calls_in_flight_end_and_leaves_enough_for_the_answer(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.usage = lambda _: Usage(input_tokens=10, output_tokens=500, requests=1)
    debate = await replica.create(make_limited_debate(3, 3, max_tokens=15_000))
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert find_concluded(events).ended_by == "token_budget"
    asked = len(stage.gateway.calls)
    assert 3 <= asked < 3 * (3 + 6 + 3) + 1
    assert stage.gateway.steps()[-1] == "synthesis"
    assert not stage.gateway.cancelled
    assert fold(events).usage.input_tokens == 10 * asked
    why = f"the debate's budget of tokens was used up in round {fold(events).current_round}"
    assert_says_what_ended_it(events, STOP_REASON_TOKEN_BUDGET, why, "ended by its budget of tokens")


async def test_a_budget_of_money_ends_a_debate_too(stage: Backstage, replica: Replica) -> None:
    stage.gateway.usage = lambda _: Usage(input_tokens=10, output_tokens=90, cost_micros=70, requests=1)
    debate = await replica.create(make_limited_debate(2, 5, max_cost_micros=4000))
    events = await stage.comes_to(debate, "COMPLETED")
    assert find_concluded(events).ended_by == "cost_budget"
    why = f"the debate's budget of money was used up in round {fold(events).current_round}"
    assert_says_what_ended_it(events, STOP_REASON_COST_BUDGET, why, "ended by its budget of money")


async def test_a_budget_of_money_that_the_first_call_exceeds_is_not_exceeded_by_its_first_wave(
    stage: Backstage, replica: Replica
) -> None:
    debate = await replica.create(make_limited_debate(5, 1, max_cost_micros=5))
    events = await stage.comes_to(debate, "FAILED")
    assert failure(events).reason == "COST_BUDGET"
    assert len(stage.gateway.calls) == 1


async def test_a_budget_too_small_for_a_proposal_fails_the_debate(stage: Backstage, replica: Replica) -> None:
    debate = await replica.create(make_limited_debate(2, max_tokens=100))
    events = await stage.comes_to(debate, "FAILED")
    failed = failure(events)
    assert failed.reason == "TOKEN_BUDGET"
    assert not stage.gateway.calls


async def test_at_most_so_many_calls_of_a_kind_run_at_a_time(stage: Backstage, replica: Replica) -> None:
    at_once: dict[str, int] = {}

    def answer_counted(step: str, agent: str) -> str:
        """Called when a call has come in: note how many of its kind are in flight."""
        kind = step.split("/")[2]
        in_flight = [asked for asked in stage.gateway.calls if asked.end == "open" and kind in asked.step]
        at_once[kind] = max(at_once.get(kind, 0), len(in_flight))
        return answer_text(step, agent)

    stage.gateway.text = answer_counted
    proposals = stage.gateway.hold("round/1/propose/*")
    critiques = stage.gateway.hold("round/1/critique/*")
    debate = await replica.create(make_debate(4, 1, concurrency={"proposals": 2, "critiques": 3}))
    await stage.gateway.wait_for("round/1/propose/*", 2)
    await replica.intervene(debate, "guide")  # recorded behind all that was begun by then
    assert len(stage.gateway.steps("round/*")) == 2
    proposals.release()
    await stage.gateway.wait_for("round/1/critique/*", 3)
    await stage.gateway.wait_for("round/1/propose/*", 4)
    await replica.intervene(debate, "guide")
    assert len(stage.gateway.steps("round/1/critique/*")) == 3
    critiques.release()
    await stage.comes_to(debate, "COMPLETED")
    assert (at_once["propose"], at_once["critique"]) == (2, 3)
