"""What a debate may still take: waits and budgets."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.engine.budget import Estimate, answer_tokens, budget_reached, estimate, next_wait
from parley.orchestrator.log.usage import UsageMeter
from parley.orchestrator.model.limits import COST_BUDGET, TOKEN_BUDGET
from parley.orchestrator.model.spec import Limits
from parley.orchestrator.model.tasks import PromptPart, Task
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.event_pb2 import StepSucceeded

ANSWER = answer_tokens("Is water wet?")


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


def used(*, read: int = 0, written: int = 0, cost_micros: int = 0) -> UsageMeter:
    """What one call used that has ended."""
    usage = Usage(input_tokens=read, output_tokens=written, cost_micros=cost_micros, requests=1)
    meter = UsageMeter()
    meter.add(StepSucceeded(work=Work(activity="proposal"), reply=Reply(text="x", usage=usage)))
    return meter


@pytest.mark.parametrize(("limit", "reached"), [(5000, ""), (4000, TOKEN_BUDGET)])
def test_calls_in_flight_and_the_answer_are_set_aside(limit: int, reached: str) -> None:
    in_flight = [Estimate(200, 300), None, Estimate(200, 300)]
    # 600 used; 1,000 fly; 500 wanted; the answer reads what is then written (400 + 900) and takes 1,503.
    meter = used(read=200, written=400)
    found = budget_reached(Limits(max_tokens=limit), meter, in_flight, Estimate(200, 300), ANSWER)
    assert found == reached


def test_once_the_answer_is_there_nothing_is_set_aside_for_it() -> None:
    meter, limits = used(read=200, written=400), Limits(max_tokens=1100)
    assert budget_reached(limits, meter, [], Estimate(200, 300), ANSWER) == TOKEN_BUDGET
    assert budget_reached(limits, meter, [], Estimate(200, 300), 0) == ""
    assert budget_reached(limits, meter, [], Estimate(200, 301), 0) == TOKEN_BUDGET


def test_money_is_estimated_by_the_price_of_the_calls_so_far() -> None:
    limits, wanted = Limits(max_cost_micros=10_000), Estimate(100, 100)
    cheap, dear = (used(read=500, written=500, cost_micros=cost) for cost in (1000, 9000))
    assert budget_reached(limits, cheap, [], wanted, ANSWER) == ""
    assert budget_reached(limits, dear, [], wanted, ANSWER) == COST_BUDGET


def test_without_limits_nothing_is_too_much() -> None:
    meter = used(read=10**9, written=10**9, cost_micros=10**9)
    assert budget_reached(Limits(), meter, [], Estimate(), ANSWER) == ""


def test_a_call_is_estimated_by_its_prompt_and_by_the_bound_on_its_answer() -> None:
    prompt = (PromptPart("system", "x" * 40), PromptPart("user", "x" * 60))
    task = Task(Work(activity="proposal"), prompt)
    assert estimate(task) == Estimate(25, 1000)
    assert estimate(replace(task, max_output_tokens=77)) == Estimate(25, 77)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Is water wet or is it not? ", 7),
        ("Ist Wasser wirklich naß?", 6),
        ("Мокрая ли вода на самом деле?", 14),
        ("水本身是湿的吗", 7),
        ("3.14159 = x", 5),
        ("", 0),
    ],
)
def test_what_is_read_is_estimated_by_script(text: str, tokens: int) -> None:
    task = Task(Work(activity="proposal"), (PromptPart("user", text),))
    assert estimate(task).read == pytest.approx(tokens, abs=2)
