"""Agents that failed for a passing reason are asked once more before anything follows from it, in later phases too."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from parley.orchestrator.log.envelope import Envelope
from tests.support.debate_logs import check_log, leave_log, outcomes
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, Replica, backstage, make_debate, make_limits
from tests.support.scripted_faults import refusal

CRITIQUE = "round/1/critique/bo/of/ada"


async def hold_debate(stage: Backstage, replica: Replica, clock: ManualClock) -> list[Envelope]:
    """Hold a debate in which a step fails, and let five seconds pass once it has."""
    debate = await replica.create(make_debate(3, 1))
    await stage.has(debate, "step_failed")
    await clock.sleeping(3)  # the heartbeat, the round's limit, and the pause
    clock.advance(5)
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    return events


@pytest.mark.parametrize("reason", ["PROVIDER_UNAVAILABLE", "PROVIDER_RATE_LIMIT", "NO_ROUTE_AVAILABLE"])
@pytest.mark.parametrize("step", [CRITIQUE, "round/1/refine/cy"])
async def test_a_step_of_a_round_is_asked_again_and_counts(
    step: str, reason: str, stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.fail(step, refusal(reason), attempt=1)
    events = await hold_debate(stage, replica, clock)
    assert outcomes(events)[step, 1] == f"failed: {reason}"
    assert not outcomes(events)[step, 2].startswith("failed")
    if step == CRITIQUE:
        assert f"bo answers {CRITIQUE}" in stage.gateway.asked("round/1/refine/ada").prompt


async def test_a_step_that_fails_again_is_left_out(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.fail(CRITIQUE, refusal("PROVIDER_UNAVAILABLE"))
    events = await hold_debate(stage, replica, clock)
    assert stage.gateway.steps(CRITIQUE) == [CRITIQUE] * 2
    assert outcomes(events)[CRITIQUE, 2] == "failed: PROVIDER_UNAVAILABLE"


@pytest.mark.parametrize("reason", ["PROVIDER_AUTH", "CALL_TIMEOUT"])
async def test_what_does_not_pass_soon_is_not_asked_again(
    reason: str, stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail(CRITIQUE, refusal(reason))
    await stage.comes_to(await replica.create(make_debate(3, 1)), "COMPLETED")
    assert stage.gateway.steps(CRITIQUE) == [CRITIQUE]


async def test_a_limit_reached_meanwhile_lets_nobody_be_asked_again(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    stage.gateway.fail(CRITIQUE, refusal("PROVIDER_UNAVAILABLE"), attempt=1)
    debate = await replica.create(make_debate(3, 1, limits=make_limits(total=3)))
    await stage.has(debate, "step_failed")
    await clock.sleeping(4)
    clock.advance(3)
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert stage.gateway.steps(CRITIQUE) == [CRITIQUE]


async def test_an_owner_that_takes_over_in_the_pause_asks_again(
    stage: Backstage, replica: Replica, clock: ManualClock, tmp_path: Path
) -> None:
    stage.gateway.fail(CRITIQUE, refusal("PROVIDER_UNAVAILABLE"), attempt=1)
    events = await hold_debate(stage, replica, clock)
    cut = next(place for place, event in enumerate(events, 1) if event.kind == "step_failed")
    late = ManualClock(events[cut].time)
    async with backstage(tmp_path / "later") as later:
        debate = await leave_log(later, events[:cut])
        async with later.replica(clock=late):
            await later.has(debate, "claimed", 2)
            await late.sleeping(3)
            late.advance(5)
            replayed = await later.comes_to(debate, "COMPLETED")
    check_log(replayed)
    assert [asked.attempt for asked in later.gateway.calls if fnmatchcase(asked.step, CRITIQUE)] == [2]
