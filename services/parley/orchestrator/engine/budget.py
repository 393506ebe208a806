"""What a debate may still use, and when a failure that may pass is retried.

All functions are pure functions of recorded events, so that every owner gets the same results.
"""

from collections.abc import Iterable, Mapping
from math import inf

from msgspec import Struct

from parley.orchestrator.log.usage import UsageMeter
from parley.orchestrator.model.limits import COST_BUDGET, TOKEN_BUDGET
from parley.orchestrator.model.spec import Price, agents_of, dearest, price_of
from parley.orchestrator.model.tasks import Task, count_part
from parley.orchestrator.model.tokens import likely_tokens
from parley.runtime.contract_settings import default_of
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateLimits, DebateSpec

UNREACHABLE = "PROVIDER_UNREACHABLE"
"""No process of the gateway that says so had an answer from there before."""
_SHORT_LIVED = frozenset({"PROVIDER_UNAVAILABLE", "PROVIDER_RATE_LIMIT", "NO_ROUTE_AVAILABLE"})
_TRANSIENT = _SHORT_LIVED | {"CALL_TIMEOUT", UNREACHABLE}
_REFUSALS = frozenset({"PROVIDER_AUTH", "PROVIDER_QUOTA", "UNKNOWN_ROUTE", UNREACHABLE})
_FIRST_WAIT_SECONDS = 5.0
_MAX_WAIT_SECONDS = 60.0
_MIN_OUTPUT_TOKENS = 1000
"""The least tokens of an answer, unless its task has a lower bound."""
_MAX_OUTPUT_TOKENS = 8192
"""The most tokens of an answer if its task has no bound: few models refuse such a bound."""
_ANSWER_SHARE = 4
"""An answer gets at most this part (one in so many) of a known context."""
_TOOL_CALLS: int = default_of(Agent, "tool_call_limit")
_MILLION = 1_000_000
_ANSWER_PROMPT_TOKENS = 500
"""Tokens of the answer's prompt in addition to the question and the contributions."""


def is_transient(reason: str) -> bool:
    """Return whether a step that failed for this reason may succeed later by itself."""
    return reason in _TRANSIENT


def is_short_lived(reason: str) -> bool:
    """Return whether a step that failed at once for this reason is worth another try some seconds later."""
    return reason in _SHORT_LIVED


def is_refusal(reason: str) -> bool:
    """Return whether a step failed because none of its agent's routes lets anyone in until a person mends something."""
    return reason in _REFUSALS


def next_wait(waited: float, limit: float) -> float:
    """Return the next wait in seconds after `waited` seconds: 5 at first, then twice as long, 60 at most, 0 at the limit."""
    wait, before = _FIRST_WAIT_SECONDS, 0.0
    while before < waited and wait < _MAX_WAIT_SECONDS:
        before += wait
        wait = min(wait * 2, _MAX_WAIT_SECONDS)
    return max(min(wait, limit - waited), 0.0)


class Estimate(Struct, frozen=True):
    """What a call may use.

    Attributes:
        read: Likely tokens of its prompt.
        least: The least tokens for its answer; with less, the call is not made.
        most: The most tokens for its answer.
        routes: The routes it uses; empty for the default routes.
        price: The price of tokens there; None if unknown.
        requests: The most requests it makes: with tools, one more than it may call, and each reads the prompt and what was looked up.
    """

    read: int
    least: int
    most: int
    routes: tuple[str, ...] = ()
    price: Price | None = None
    requests: int = 1


def estimate(task: Task, agent: Agent) -> Estimate:
    """Return what a call may use, from its prompt, the bound on its answer and the context of its routes."""
    read = sum(count_part(part, likely_tokens) for part in task.prompt)
    most = task.max_output_tokens or min(
        agent.context_tokens // _ANSWER_SHARE or _MAX_OUTPUT_TOKENS, _MAX_OUTPUT_TOKENS
    )
    looks_up = bool(agent.tools) and any(part.document for part in task.prompt)
    requests = 1 + (agent.tool_call_limit or _TOOL_CALLS) if looks_up else 1
    return Estimate(read, min(_MIN_OUTPUT_TOKENS, most), most, tuple(agent.routes), price_of(agent), requests)


class Rates(Struct, frozen=True):
    """What a budget counts for a token that is read, and for a token that is written."""

    read: float
    written: float


class BudgetBalance(Struct, frozen=True):
    """The balance of one budget before a call.

    Attributes:
        name: The budget.
        remaining: What is left after all reservations.
        rates: What the tokens of the call count.
        read_again: What a token counts if the answer reads it later.
        read_by_ballots: What a token counts if the ballots read it later: of a text, what is longer than the agent's longest so far.
        longest: The tokens of that one.
    """

    name: str
    remaining: float
    rates: Rates
    read_again: float
    read_by_ballots: float = 0.0
    longest: int = 0

    def amount(self, read: int, written: int) -> float:
        """Return what a call with so many tokens counts."""
        longer = max(written - self.longest, 0)
        return (
            read * self.rates.read
            + written * (self.rates.written + self.read_again)
            + longer * self.read_by_ballots
        )

    def readable(self, written: int, share: float) -> float:
        """Return the tokens that may be read for a share of what is left, if so many are written; infinity if they cost nothing."""
        left = self.remaining * share - self.amount(0, written)
        return max(left / self.rates.read, 0.0) if self.rates.read else inf

    def affordable(self, read: int, share: float) -> float:
        """Return the tokens that may be written for a share of what is left; infinity if they cost nothing."""
        each = self.rates.written + self.read_again
        left = self.remaining * share - read * self.rates.read
        affordable = left / each if each else inf
        if affordable <= self.longest or not self.read_by_ballots:
            return affordable
        return (left + self.longest * self.read_by_ballots) / (each + self.read_by_ballots)


class AnswerReserve(Struct, frozen=True):
    """What is reserved for the calls that make the answer.

    Attributes:
        read: Tokens that each of them reads in addition to what agents wrote.
        written: Tokens that each writes.
        price: The highest price.
        calls: How many are to come. The last one reads all that was written, ballots too, and each before it, which casts a
            ballot, the present text of every agent.
    """

    read: int
    written: int
    price: Price | None = None
    calls: int = 1


def budget_balances(
    limits: DebateLimits,
    meter: UsageMeter,
    reserved: Iterable[Mapping[str, float]],
    call: Estimate,
    answer: AnswerReserve | None,
    agent: str = "",
) -> tuple[BudgetBalance, ...]:
    """Return the balance of each budget of a debate before a call.

    `reserved` is what calls in flight have reserved, by budget. `answer` is None if nothing is reserved for it, since it exists
    or is being created. `agent` is who writes. If a price is unknown, it is the average price of the calls so far.
    """
    in_flight = tuple(reserved)
    balances = []
    for name, limit, spent in (
        (TOKEN_BUDGET, limits.max_tokens, meter.tokens),
        (COST_BUDGET, limits.max_cost_micros, meter.cost_micros),
    ):
        if not limit:
            continue
        left = limit - spent - sum(each.get(name, 0.0) for each in in_flight)
        read_again = read_by_ballots = 0.0
        if answer is not None:
            of_answer = _rates(name, answer.price, meter)
            ballots = answer.calls - 1
            read_again, read_by_ballots = of_answer.read, ballots * of_answer.read
            material = meter.written + ballots * (answer.written + sum(meter.longest.values()))
            left -= (answer.calls * answer.read + material) * of_answer.read
            left -= answer.calls * answer.written * of_answer.written
        rates, longest = _rates(name, call.price, meter), meter.longest.get(agent, 0)
        balances.append(BudgetBalance(name, left, rates, read_again, read_by_ballots, longest))
    return tuple(balances)


def answer_reserve(spec: DebateSpec) -> AnswerReserve:
    """Return what to reserve for the answer of a debate, at the price of its dearest agent."""
    price = dearest(map(price_of, (*agents_of(spec), spec.judge.agent)))
    return AnswerReserve(likely_tokens(spec.question) + _ANSWER_PROMPT_TOKENS, _MIN_OUTPUT_TOKENS, price)


def _rates(budget: str, price: Price | None, meter: UsageMeter) -> Rates:
    if budget == TOKEN_BUDGET:
        return Rates(1.0, 1.0)
    if price is None:
        average = meter.estimate_cost(1)
        return Rates(average, average)
    return Rates(price.read / _MILLION, price.written / _MILLION)
