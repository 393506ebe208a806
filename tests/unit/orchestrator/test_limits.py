"""What a debate may take: waits, running time, budgets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.events import Reply, StepFailed, StepSucceeded, Usage, Work
from parley.orchestrator.limits import (
    COST_BUDGET,
    TOKEN_BUDGET,
    Estimate,
    Mode,
    RunningTime,
    Spent,
    budget_reached,
    next_wait,
)
from parley.orchestrator.spec import Limits
from tests.support.orchestration import make_spec


def waits(limit: float) -> list[float]:
    made: list[float] = []
    while wait := next_wait(sum(made), limit):
        made.append(wait)
    return made


def test_waits_double_from_five_seconds_to_a_minute_and_end_at_their_limit() -> None:
    assert waits(600)[:6] == [5, 10, 20, 40, 60, 60]
    assert sum(waits(600)) == 600
    assert waits(12) == [5, 7]
    assert waits(0) == []


@given(st.floats(0, 10_000), st.floats(0, 10_000))
def test_no_wait_goes_beyond_its_limit(waited: float, limit: float) -> None:
    assert 0 <= next_wait(waited, limit) <= max(limit - waited, 0)


def test_only_time_of_one_owner_at_work_counts_and_waits_for_providers_count_apart() -> None:
    time = RunningTime()
    time.pass_on(1, 100.0)
    time.mode = Mode.WORKING
    time.pass_on(1, 110.0)
    assert (time.worked(115.0), time.total(115.0)) == (15.0, 15.0)
    time.mode = Mode.WAITING
    assert (time.worked(130.0), time.total(130.0)) == (10.0, 30.0)
    time.pass_on(1, 140.0)
    time.mode = Mode.RESTING
    assert time.total(1000.0) == 40.0
    time.pass_on(1, 1000.0)
    time.mode = Mode.WORKING
    time.pass_on(2, 7.0)  # another owner, whose clock shows something else
    assert time.total(8.0) == 41.0


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    time = RunningTime()
    time.pass_on(1, 100.0)
    time.mode = Mode.WORKING
    time.pass_on(1, 40.0)
    assert time.total(40.0) == 0.0


def spent(*usages: Usage) -> Spent:
    counted = Spent()
    for usage in usages:
        counted.add(StepSucceeded(Work("proposal"), "", Reply("x", usage=usage)))
    return counted


def test_failed_calls_and_calls_without_a_price_count_as_far_as_they_are_known() -> None:
    used = spent(Usage(100, 100, 400, 1), Usage(50, 50, None, 1))
    used.add(StepFailed(Work("critique"), "", "PROVIDER_QUOTA", "no", Usage(10, 0, None, 2)))
    assert (used.tokens, used.cost_micros, used.price_of(100)) == (310, 400, 200.0)


@pytest.mark.parametrize(("limit", "reached"), [(5000, ""), (4000, TOKEN_BUDGET)])
def test_calls_in_flight_and_the_synthesis_are_set_aside(limit: int, reached: str) -> None:
    spec = make_spec(limits=Limits(max_tokens=limit))
    flying = [Estimate(200, 300), None, Estimate(200, 300)]
    # 600 used; 1,000 fly; 500 wanted; the synthesis reads what is then written (400 + 900) and takes 1,503.
    found = budget_reached(spec, spent(Usage(200, 400)), flying, Estimate(200, 300))
    assert found == reached


def test_money_is_estimated_by_the_price_of_the_calls_so_far() -> None:
    spec = make_spec(limits=Limits(max_cost_micros=10_000))
    assert budget_reached(spec, spent(Usage(500, 500, 1000, 1)), [], Estimate(100, 100)) == ""
    assert budget_reached(spec, spent(Usage(500, 500, 9000, 1)), [], Estimate(100, 100)) == COST_BUDGET


def test_without_limits_nothing_is_too_much() -> None:
    assert budget_reached(make_spec(), spent(Usage(10**9, 10**9, 10**9, 1)), [], Estimate()) == ""
