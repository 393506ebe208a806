"""What a debate may take: time, tokens and money used so far, and what follows from a failure that may pass.

Everything here is a fold of recorded events or a plain function of one, so that every owner comes to the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from parley.orchestrator.events import StepFailed, StepSucceeded, Usage
from parley.orchestrator.spec import DebateSpec, Limits
from parley.orchestrator.tasks import Task

__all__ = [
    "COST_BUDGET",
    "ROUND_TIMEOUT",
    "TOKEN_BUDGET",
    "TOTAL_TIMEOUT",
    "Estimate",
    "Mode",
    "RunningTime",
    "Spent",
    "budget_reached",
    "estimate",
    "may_pass",
    "next_wait",
]

ROUND_TIMEOUT = "round_timeout"
TOTAL_TIMEOUT = "total_timeout"
TOKEN_BUDGET = "token_budget"  # noqa: S105 - tokens of a model
COST_BUDGET = "cost_budget"

_MAY_PASS = frozenset({"PROVIDER_UNAVAILABLE", "PROVIDER_RATE_LIMIT", "NO_ROUTE_AVAILABLE", "CALL_TIMEOUT"})
_FIRST_WAIT_SECONDS = 5.0
_LONGEST_WAIT_SECONDS = 60.0
_CHARACTERS_A_TOKEN = 4
_ANSWER_TOKENS = 1000
"""Tokens that an answer without a bound of its own is expected to take."""
_SYNTHESIS_PROMPT_TOKENS = 500
"""Tokens of what the judge is told beside the question and the contributions."""


def may_pass(reason: str) -> bool:
    """Return whether a step that failed for this reason may succeed later, without anybody's doing."""
    return reason in _MAY_PASS


def next_wait(waited: float, limit: float) -> float:
    """Return the seconds to wait after having waited so long: 5 at first, then twice as long, 60 at most, 0 at the limit."""
    wait, before = _FIRST_WAIT_SECONDS, 0.0
    while before < waited and wait < _LONGEST_WAIT_SECONDS:
        before += wait
        wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
    return max(min(wait, limit - waited), 0.0)


class Mode(Enum):
    """What the time that passes is spent on."""

    RESTING = "resting"
    WORKING = "working"
    WAITING = "waiting"


@dataclass(slots=True)
class RunningTime:
    """How long a debate has been worked on. Time without an owner, paused or at a checkpoint does not count.

    Attributes:
        working: Seconds.
        waiting: Seconds in which providers were waited for.
    """

    working: float = 0.0
    waiting: float = 0.0
    mode: Mode = Mode.RESTING
    _epoch: int = 0
    _since: float = 0.0

    def pass_on(self, epoch: int, at: float) -> None:
        """Count the time up to an event. Between two owners none passes, so that each may count by a clock of its own."""
        if epoch == self._epoch and epoch > 0:
            self.working += self._passed(at, Mode.WORKING)
            self.waiting += self._passed(at, Mode.WAITING)
        self._epoch, self._since = epoch, at

    def worked(self, now: float) -> float:
        """Return the seconds of work up to now, by the clock that the owner's events are passed on with."""
        return self.working + self._passed(now, Mode.WORKING)

    def total(self, now: float) -> float:
        """Return the same with the seconds in which providers were waited for."""
        return self.worked(now) + self.waiting + self._passed(now, Mode.WAITING)

    def restart(self) -> None:
        """Count from nothing again."""
        self.working = self.waiting = 0.0

    def _passed(self, now: float, mode: Mode) -> float:
        return max(now - self._since, 0.0) if self.mode is mode else 0.0


@dataclass(slots=True)
class Spent:
    """What calls used. A call whose price is not known counts in `tokens` alone."""

    tokens: int = 0
    written: int = 0
    cost_micros: int = 0
    priced_tokens: int = 0

    def add(self, outcome: StepSucceeded | StepFailed) -> None:
        """Count a step's outcome."""
        if isinstance(outcome, StepFailed):
            usage = outcome.usage
        else:
            usage = outcome.reply.usage if outcome.reply else Usage()
        tokens = usage.input_tokens + usage.output_tokens
        self.tokens += tokens
        self.written += usage.output_tokens
        if usage.cost_micros is not None:
            self.cost_micros += usage.cost_micros
            self.priced_tokens += tokens

    def price_of(self, tokens: int) -> float:
        """Return what so many tokens may cost, by the calls so far, in millionths of a US dollar."""
        return tokens * self.cost_micros / self.priced_tokens if self.priced_tokens else 0.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """Tokens that a call is expected to take."""

    read: int = 0
    written: int = 0


def estimate(task: Task) -> Estimate:
    """Return what a call may take, from the length of its prompt and the bound on its answer."""
    characters = sum(len(part.text) for part in task.prompt)
    return Estimate(characters // _CHARACTERS_A_TOKEN, task.max_output_tokens or _ANSWER_TOKENS)


def budget_reached(
    spec: DebateSpec, spent: Spent, in_flight: Iterable[Estimate | None], wanted: Estimate
) -> str:
    """Return the budget that one more call would exceed, or an empty text.

    What calls in flight may take counts as used, and so does the synthesis, which reads all that was written.
    """
    limits: Limits = spec.limits
    calls = [*(each for each in in_flight if each is not None), wanted]
    written = sum(call.written for call in calls)
    question = len(spec.question) // _CHARACTERS_A_TOKEN
    synthesis = spent.written + written + question + _SYNTHESIS_PROMPT_TOKENS + _ANSWER_TOKENS
    reserved = written + sum(call.read for call in calls) + synthesis
    if limits.max_tokens and spent.tokens + reserved > limits.max_tokens:
        return TOKEN_BUDGET
    if limits.max_cost_micros and spent.cost_micros + spent.price_of(reserved) > limits.max_cost_micros:
        return COST_BUDGET
    return ""
