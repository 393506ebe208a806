"""What a debate may still use, and what follows from a failure that may pass.

Everything here is a plain function of recorded events, so that every owner comes to the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from parley.orchestrator.log.usage import UsageMeter
from parley.orchestrator.model.limits import COST_BUDGET, TOKEN_BUDGET
from parley.orchestrator.model.spec import AgentSpec, DebateSpec, Limits, Price
from parley.orchestrator.model.tasks import Task
from parley.orchestrator.model.tokens import likely_tokens

__all__ = [
    "AnswerReserve",
    "BudgetBalance",
    "Estimate",
    "Rates",
    "answer_reserve",
    "budget_balances",
    "estimate",
    "is_short_lived",
    "is_transient",
    "next_wait",
]

_TRANSIENT = frozenset({"PROVIDER_UNAVAILABLE", "PROVIDER_RATE_LIMIT", "NO_ROUTE_AVAILABLE", "CALL_TIMEOUT"})
_FIRST_WAIT_SECONDS = 5.0
_MAX_WAIT_SECONDS = 60.0
_MIN_OUTPUT_TOKENS = 1000
"""Tokens that an answer is given at least, unless its task has a bound of its own that is less."""
_MAX_OUTPUT_TOKENS = 8192
"""Tokens that an answer is given at most where nobody has said it: few models refuse a bound of so many."""
_ANSWER_SHARE = 4
"""One part in so many of a known context is what an answer is given at most."""
_MILLION = 1_000_000
_ANSWER_PROMPT_TOKENS = 500
"""Tokens of what whoever writes the answer is told beside the question and the contributions."""


def is_transient(reason: str) -> bool:
    """Return whether a step that failed for this reason may succeed later, without anybody's doing."""
    return reason in _TRANSIENT


def is_short_lived(reason: str) -> bool:
    """Return whether a step that failed for this reason, and at once, is worth asking again some seconds later."""
    return reason in _TRANSIENT - {"CALL_TIMEOUT"}


def next_wait(waited: float, limit: float) -> float:
    """Return the seconds to wait after having waited so long: 5 at first, then twice as long, 60 at most, 0 at the limit."""
    wait, before = _FIRST_WAIT_SECONDS, 0.0
    while before < waited and wait < _MAX_WAIT_SECONDS:
        before += wait
        wait = min(wait * 2, _MAX_WAIT_SECONDS)
    return max(min(wait, limit - waited), 0.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a call may take.

    Attributes:
        read: Tokens of its prompt, about.
        least: Tokens that its answer needs at least; no call is made for less.
        most: Tokens that its answer is given at most.
        routes: Whom it asks; empty for the default routes.
        price: What tokens cost there; None: not known.
    """

    read: int
    least: int
    most: int
    routes: tuple[str, ...] = ()
    price: Price | None = None


def estimate(task: Task, agent: AgentSpec, texts: Iterable[str]) -> Estimate:
    """Return what a call may take, from the texts of its prompt, the bound on its answer and the context of its routes."""
    read = sum(map(likely_tokens, texts))
    most = task.max_output_tokens or min(
        agent.context_tokens // _ANSWER_SHARE or _MAX_OUTPUT_TOKENS, _MAX_OUTPUT_TOKENS
    )
    return Estimate(read, min(_MIN_OUTPUT_TOKENS, most), most, agent.routes, agent.price)


@dataclass(frozen=True, slots=True)
class Rates:
    """What a budget counts for a token: one that is read, and one that is written."""

    read: float
    written: float


@dataclass(frozen=True, slots=True)
class BudgetBalance:
    """How one budget stands before a call.

    Attributes:
        name: The budget.
        remaining: What nothing is set aside for.
        rates: What the call's tokens count.
        read_again: What a token counts that the answer will read.
    """

    name: str
    remaining: float
    rates: Rates
    read_again: float

    def amount(self, read: int, written: int) -> float:
        """Return what a call counts that reads and writes so many tokens."""
        return read * self.rates.read + written * (self.rates.written + self.read_again)

    def affordable(self, read: int, share: float) -> float:
        """Return the tokens that may be written for a share of what is left; infinitely many where they count nothing."""
        each = self.rates.written + self.read_again
        left = self.remaining * share - read * self.rates.read
        return left / each if each else inf


@dataclass(frozen=True, slots=True)
class AnswerReserve:
    """What is set aside for the answer: tokens to read beside all that was written, to write, and the dearest price."""

    read: int
    written: int
    price: Price | None = None


def budget_balances(
    limits: Limits,
    meter: UsageMeter,
    held: Iterable[Mapping[str, float]],
    wanted: Estimate,
    answer: AnswerReserve | None,
) -> tuple[BudgetBalance, ...]:
    """Return how each budget of a debate stands before a call.

    `held` is what calls in flight have set aside, by budget; `answer` is None where nothing is set aside for it, since it is there
    or being asked for. A price that is not known is that of the calls so far.
    """
    in_flight = tuple(held)
    found = []
    for name, limit, spent in (
        (TOKEN_BUDGET, limits.max_tokens, meter.tokens),
        (COST_BUDGET, limits.max_cost_micros, meter.cost_micros),
    ):
        if not limit:
            continue
        left = limit - spent - sum(each.get(name, 0.0) for each in in_flight)
        read_again = 0.0
        if answer is not None:
            of_answer = _rates(name, answer.price, meter)
            read_again = of_answer.read
            left -= (answer.read + meter.written) * of_answer.read + answer.written * of_answer.written
        found.append(BudgetBalance(name, left, _rates(name, wanted.price, meter), read_again))
    return tuple(found)


def answer_reserve(spec: DebateSpec) -> AnswerReserve:
    """Return what to set aside for a debate's answer, whoever writes it."""
    prices = [each.price for each in (*spec.agents, spec.judge) if each.price is not None]
    dearest = (
        Price(max(each.read for each in prices), max(each.written for each in prices)) if prices else None
    )
    return AnswerReserve(likely_tokens(spec.question) + _ANSWER_PROMPT_TOKENS, _MIN_OUTPUT_TOKENS, dearest)


def _rates(budget: str, price: Price | None, meter: UsageMeter) -> Rates:
    if budget == TOKEN_BUDGET:
        return Rates(1.0, 1.0)
    if price is None:
        average = meter.estimate_cost(1)
        return Rates(average, average)
    return Rates(price.read / _MILLION, price.written / _MILLION)
