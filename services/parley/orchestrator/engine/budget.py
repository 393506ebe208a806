"""What a debate may still use, and what follows from a failure that may pass.

Everything here is a plain function of recorded events, so that every owner comes to the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from parley.orchestrator.log.usage import UsageMeter
from parley.orchestrator.model.limits import COST_BUDGET, TOKEN_BUDGET
from parley.orchestrator.model.spec import Limits
from parley.orchestrator.model.tasks import Task
from parley.orchestrator.model.tokens import likely_tokens

__all__ = ["Estimate", "answer_tokens", "budget_reached", "estimate", "may_pass", "next_wait"]

_MAY_PASS = frozenset({"PROVIDER_UNAVAILABLE", "PROVIDER_RATE_LIMIT", "NO_ROUTE_AVAILABLE", "CALL_TIMEOUT"})
_FIRST_WAIT_SECONDS = 5.0
_MAX_WAIT_SECONDS = 60.0
_ANSWER_TOKENS = 1000
"""Tokens that an answer without a bound of its own is expected to take."""
_ANSWER_PROMPT_TOKENS = 500
"""Tokens of what whoever writes the answer is told beside the question and the contributions."""


def may_pass(reason: str) -> bool:
    """Return whether a step that failed for this reason may succeed later, without anybody's doing."""
    return reason in _MAY_PASS


def next_wait(waited: float, limit: float) -> float:
    """Return the seconds to wait after having waited so long: 5 at first, then twice as long, 60 at most, 0 at the limit."""
    wait, before = _FIRST_WAIT_SECONDS, 0.0
    while before < waited and wait < _MAX_WAIT_SECONDS:
        before += wait
        wait = min(wait * 2, _MAX_WAIT_SECONDS)
    return max(min(wait, limit - waited), 0.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Tokens that a call is expected to take."""

    read: int = 0
    written: int = 0


def estimate(task: Task) -> Estimate:
    """Return what a call may take, from the length of its prompt and the bound on its answer."""
    read = sum(likely_tokens(part.text) for part in task.prompt)
    return Estimate(read, task.max_output_tokens or _ANSWER_TOKENS)


def budget_reached(
    limits: Limits, meter: UsageMeter, in_flight: Iterable[Estimate | None], wanted: Estimate, answer: int
) -> str:
    """Return the budget that one more call would exceed, or an empty text.

    What calls in flight may take counts as used, and so do the `answer` tokens that are set aside for the answer beside
    all that was written, which it has to read; 0 once it is there.
    """
    calls = [*(each for each in in_flight if each is not None), wanted]
    written = sum(call.written for call in calls)
    reserved = written + sum(call.read for call in calls)
    if answer:
        reserved += answer + meter.written + written
    if limits.max_tokens and meter.tokens + reserved > limits.max_tokens:
        return TOKEN_BUDGET
    if limits.max_cost_micros and meter.cost_micros + meter.price_of(reserved) > limits.max_cost_micros:
        return COST_BUDGET
    return ""


def answer_tokens(question: str) -> int:
    """Return the tokens to set aside for an answer, beside what it has to read of the debate."""
    return likely_tokens(question) + _ANSWER_PROMPT_TOKENS + _ANSWER_TOKENS
