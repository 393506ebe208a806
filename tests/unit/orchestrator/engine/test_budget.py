"""What a debate may still take: waits and budgets."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from parley.orchestrator.engine.budget import (
    AnswerReserve,
    BudgetBalance,
    Estimate,
    answer_reserve,
    budget_balances,
    estimate,
    next_wait,
)
from parley.orchestrator.log.usage import UsageMeter
from parley.orchestrator.model.limits import COST_BUDGET, TOKEN_BUDGET
from parley.orchestrator.model.spec import Price, agents_of
from parley.orchestrator.model.tasks import Task, system_part, user_part
from parley.v1.agent_pb2 import Agent, Usage
from parley.v1.debate_pb2 import DebateLimits, Reply, Work
from parley.v1.event_pb2 import StepSucceeded
from tests.support.orchestration import agent, make_debate, make_limits, with_fields, with_spec

ANSWER = AnswerReserve(503, 1000)


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


def measure_use(*, read: int = 0, written: int = 0, cost_micros: int = 0) -> UsageMeter:
    """What one call used that has ended."""
    usage = Usage(input_tokens=read, output_tokens=written, cost_micros=cost_micros, requests=1)
    meter = UsageMeter()
    meter.add(StepSucceeded(work=Work(activity="proposal"), reply=Reply(text="x", usage=usage)))
    return meter


def balance_budget(limits: DebateLimits, meter: UsageMeter, *held: float, **given: Any) -> BudgetBalance:
    """How the only budget stands before a call, with so much set aside for calls in flight."""
    wanted = Estimate(200, 300, 300, price=given.get("price"))
    name = TOKEN_BUDGET if limits.max_tokens else COST_BUDGET
    (found,) = budget_balances(limits, meter, [{name: each} for each in held], wanted, given.get("answer"))
    return found


def test_calls_in_flight_and_the_answer_are_set_aside() -> None:
    # 600 used; 1,600 fly; the answer reads what is written so far (400) beside 503, and takes 1,000.
    found = balance_budget(
        make_limits(max_tokens=5000), measure_use(read=200, written=400), 800, 800, answer=ANSWER
    )
    assert found.remaining == 5000 - 600 - 1600 - 400 - 1503
    # What is written now is read once more.
    assert found.amount(200, 300) == 800
    assert found.affordable(200, 1) == (found.remaining - 200) / 2


def test_once_the_answer_is_there_nothing_is_set_aside_for_it() -> None:
    found = balance_budget(make_limits(max_tokens=1100), measure_use(read=200, written=400))
    assert (found.remaining, found.amount(200, 300), found.affordable(200, 1)) == (500, 500, 300)


def test_money_is_counted_by_the_price_of_the_routes_that_may_be_asked() -> None:
    limits, price = make_limits(max_cost_micros=10_000), Price(2_000_000, 8_000_000)
    found = balance_budget(limits, measure_use(cost_micros=1000), price=price)
    assert (found.remaining, found.amount(200, 300), found.affordable(200, 1)) == (9000, 2800, 1075)
    reserved = replace(ANSWER, price=Price(1_000_000, 4_000_000))
    found = balance_budget(limits, measure_use(written=100, cost_micros=1000), price=price, answer=reserved)
    assert found.remaining == 9000 - (503 + 100) - 4000
    assert found.amount(200, 300) == 2800 + 300


def test_money_is_counted_by_the_calls_so_far_where_no_price_is_known() -> None:
    meter = measure_use(read=500, written=500, cost_micros=3000)
    assert balance_budget(make_limits(max_cost_micros=10_000), meter).amount(200, 300) == 1500


def test_the_dearest_of_everybody_stands_for_whoever_writes_the_answer() -> None:
    one, other = agents_of(make_debate().spec)
    agents = (set_prices(one, 5, 20), set_prices(other, 7, 10))
    assert answer_reserve(with_spec(make_debate(), agents=agents).spec).price == Price(7, 20)
    assert answer_reserve(make_debate().spec) == ANSWER


def test_without_limits_nothing_is_counted() -> None:
    assert budget_balances(make_limits(), measure_use(read=10**9), [], Estimate(1, 1, 1), ANSWER) == ()


def set_prices(agent: Agent, read: int, written: int) -> Agent:
    return with_fields(agent, input_price_micros=read, output_price_micros=written)


def test_a_call_is_estimated_by_its_prompt_and_by_what_its_answer_may_have() -> None:
    prompt = (system_part("x" * 40), user_part("x" * 60))
    task, ada = Task(Work(activity="proposal"), prompt), agent("ada")
    assert estimate(task, ada) == Estimate(25, 1000, 8192)
    assert estimate(task, with_fields(ada, context_tokens=16_000)).most == 4000
    assert estimate(task, with_fields(ada, routes=("p/m",))).routes == ("p/m",)
    assert estimate(replace(task, max_output_tokens=77), ada) == Estimate(25, 77, 77)
    assert estimate(replace(task, max_output_tokens=20_000), ada) == Estimate(25, 1000, 20_000)


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
    task = Task(Work(activity="proposal"), (user_part(text),))
    assert estimate(task, agent("ada")).read == pytest.approx(tokens, abs=2)
