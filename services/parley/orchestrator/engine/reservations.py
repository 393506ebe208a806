"""What calls set aside of a debate's budgets before they are made, so that what is spent stays within them.

A call sets aside what its prompt counts and what its answer may count, and gives both back when its outcome is recorded. A call
that finds too little left waits for those in flight, which mostly take less than they set aside. So budgets are exceeded by calls
alone that took more than they were given. Whether a route keeps its bound nobody can tell before it was asked, and an answer that
was shorter than its bound anyway says only how long answers are there. So a route is trusted with bounds that its answers were
never longer than, and with any bound once it has kept one that was shorter; from when it did not keep one, with none. A call that
is not trusted with its bound is made while no other one is: one such call is what a debate may be over.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from parley.orchestrator.engine.budget import AnswerReserve, BudgetBalance, Estimate, budget_balances
from parley.orchestrator.engine.steps import StepAttempt
from parley.orchestrator.log.usage import UsageMeter
from parley.orchestrator.model.spec import Limits
from parley.v1.agent_pb2 import Usage

__all__ = ["Reservations"]


@dataclass(frozen=True, slots=True)
class _Reservation:
    """What one call has set aside, by budget; `alone`: no other call is made beside it."""

    amounts: dict[str, float]
    balances: tuple[BudgetBalance, ...]
    alone: bool
    is_answer: bool


@dataclass(slots=True)
class Reservations:
    """What the calls in flight of one debate have set aside.

    Attributes:
        limits: The budgets.
        meter: Returns what was used so far.
        answer: What is set aside for the answer; None: nothing.
        share: One part in so many of what is left is what a call may set aside, where more than it needs at least is left.
    """

    limits: Limits
    meter: Callable[[], UsageMeter]
    answer: AnswerReserve | None
    share: int
    _in_flight: dict[str, _Reservation] = field(default_factory=dict)
    _trusted_bounds: dict[tuple[str, ...], float] = field(default_factory=dict)
    """The shortest bound that calls of these routes are trusted with; missing: none yet."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def has_budget(self) -> bool:
        """Whether there is a budget at all."""
        return bool(self.limits.max_tokens or self.limits.max_cost_micros)

    def clear(self) -> None:
        """Begin with no call in flight."""
        self._in_flight.clear()
        self.notify_changed()

    def notify_changed(self) -> None:
        """Let those that wait look again."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait_for_change(self) -> None:
        """Wait until a call has given back what it had set aside, or those that wait are to look again."""
        await self._changed.wait()

    def try_reserve(
        self, attempt: StepAttempt, wanted: Estimate, *, is_answered: bool, must: bool, may_wait: bool
    ) -> bool:
        """Set aside what a call may take, and say on the attempt how long its answer may be; False: it has to wait.

        Where it would exceed a budget with no other call in flight, the attempt says which. A call that `must` be made is given
        what there is, and never less than it needs.
        """
        request, waits = attempt.request, may_wait and bool(self._in_flight)
        if waits and any(each.alone for each in self._in_flight.values()):
            return False
        is_asked = request.is_answer or any(each.is_answer for each in self._in_flight.values())
        answer = None if is_answered or is_asked else self.answer
        held = [each.amounts for each in self._in_flight.values()]
        found = budget_balances(self.limits, self.meter(), held, wanted, answer)
        exceeded = [each.name for each in found if each.affordable(wanted.read, 1) < wanted.least]
        if exceeded and waits:
            return False
        if exceeded and not must:
            attempt.exceeds = exceeded[0]
            return True
        share = 1.0 if request.is_answer else 1 / self.share
        given = min((each.affordable(wanted.read, share) for each in found), default=inf)
        bound = max(wanted.least, int(min(given, wanted.most)))
        alone = bound < self._trusted_bounds.get(wanted.routes, inf)
        if waits and alone:
            return False
        attempt.bound = bound
        amounts = {each.name: each.amount(wanted.read, attempt.bound) for each in found}
        self._in_flight[request.key] = _Reservation(amounts, found, alone, request.is_answer)
        return True

    def release(self, attempt: StepAttempt, wanted: Estimate) -> None:
        """Give back what a call had set aside, and learn from its outcome which bounds its routes are trusted with."""
        held = self._in_flight.pop(attempt.request.key, None)
        if held is not None and attempt.usage.requests:
            self._trusted_bounds[wanted.routes] = self._learn_bound(held, attempt, wanted)
        self.notify_changed()

    def _learn_bound(self, held: _Reservation, attempt: StepAttempt, wanted: Estimate) -> float:
        trusted, written = self._trusted_bounds.get(wanted.routes), attempt.usage.output_tokens
        if trusted == inf or not _was_enough(held, attempt.usage):
            return inf
        if trusted is None:
            return written
        if trusted == 0 or attempt.bound < trusted:
            return 0
        return max(trusted, written)


def _was_enough(held: _Reservation, usage: Usage) -> bool:
    return all(
        each.amount(usage.input_tokens, usage.output_tokens) <= held.amounts[each.name]
        for each in held.balances
    )
