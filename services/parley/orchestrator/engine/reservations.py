"""What calls reserve of a debate's budgets before they are made, so that the debate stays within them.

A call reserves what its prompt and its answer may count, and frees it once its outcome is recorded. If too little is left, a call
waits for those in flight, which mostly use less than they reserved. So only a call that uses more than its bound exceeds a budget.

The calls that make the answer, ballots among them, are made in any case. So something is reserved for each of them from the start. If
too little is left all the same, they share it, and their prompts are shortened to that.

Whether a route keeps a bound is only known from its answers. A route is trusted with bounds that none of its answers exceeded,
and with any bound once it has kept one that was shorter than earlier answers; after it exceeds a bound, with none. A call whose
route is not trusted with the bound runs alone, so that a debate exceeds its budgets by one such call at most.
"""

import asyncio
from collections.abc import Callable
from math import inf

from msgspec import Struct, field
from msgspec.structs import replace

from parley.orchestrator.engine.budget import AnswerReserve, BudgetBalance, Estimate, budget_balances
from parley.orchestrator.engine.steps import StepAttempt, StepRequest
from parley.orchestrator.log.usage import UsageMeter
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import DebateLimits


class _Reservation(Struct, frozen=True):
    """What one call has reserved, by budget. `alone`: no other call runs at the same time."""

    amounts: dict[str, float]
    balances: tuple[BudgetBalance, ...]
    alone: bool
    is_answer: bool


class Reservations(Struct):
    """What the calls in flight of one debate have reserved.

    Attributes:
        limits: The budgets.
        meter: Returns what the debate has used so far.
        answer: What is reserved for the calls that make the answer; None: nothing.
        answer_calls: How many of these have no outcome yet.
        share: A call may reserve one part in so many of what is left, but at least what it needs.
    """

    limits: DebateLimits
    meter: Callable[[], UsageMeter]
    answer: AnswerReserve | None
    share: int
    answer_calls: int = 1
    _in_flight: dict[str, _Reservation] = field(default_factory=dict)
    _trusted_bounds: dict[tuple[str, ...], float] = field(default_factory=dict)
    """The lowest bound that these routes are trusted with; missing: none yet."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def has_budget(self) -> bool:
        """Whether the debate has a budget."""
        return bool(self.limits.max_tokens or self.limits.max_cost_micros)

    def clear(self) -> None:
        """Remove all reservations, and expect one call that makes the answer."""
        self._in_flight.clear()
        self.answer_calls = 1
        self.notify_changed()

    def notify_changed(self) -> None:
        """Wake the calls that wait, so that they try again."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait_for_change(self) -> None:
        """Wait until a reservation is freed, or `notify_changed` is called."""
        await self._changed.wait()

    def try_reserve(self, attempt: StepAttempt, estimate: Estimate, *, must: bool, may_wait: bool) -> bool:
        """Reserve what a call may use, and set the bound of its answer in the attempt. Return False if it has to wait.

        If it would exceed a budget with no other call in flight, set that budget in the attempt. A call that `must` be made gets
        what is left, but at least what it needs. If that is too little for one that makes the answer, it gets an equal part of it with
        those to come, and its prompt is shortened to that.
        """
        request, waits = attempt.request, may_wait and bool(self._in_flight)
        if waits and any(each.alone for each in self._in_flight.values()):
            return False
        to_come = self._count_answer_calls_to_come(request)
        balances = self._compute_balances(request, estimate, to_come)
        exceeded = [each.name for each in balances if each.affordable(estimate.read, 1) < estimate.least]
        if exceeded and waits:
            return False
        if exceeded and not must:
            attempt.exceeds = exceeded[0]
            return True
        read, share = estimate.read, 1 / self.share
        if request.is_answer and (exceeded or not to_come):
            balances, share = self._compute_balances(request, estimate, 0), 1 / (to_come + 1)
            read = int(min([read, *(each.readable(estimate.least, share) for each in balances)]))
            attempt.prompt_share = read / estimate.read if estimate.read else 1.0
        looks_up = estimate.requests > 1
        affordable = min((each.affordable(read, share / (1 + looks_up)) for each in balances), default=inf)
        bound = max(estimate.least, int(min(affordable, estimate.most)))
        if looks_up:
            readable = min((each.readable(bound, share) for each in balances), default=inf)
            read = attempt.read_bound = max(read, int(min(readable, read * estimate.requests)))
        alone = bound < self._trusted_bounds.get(estimate.routes, inf)
        if waits and alone:
            return False
        attempt.bound = bound
        amounts = {each.name: each.amount(read, attempt.bound) for each in balances}
        self._in_flight[request.key] = _Reservation(amounts, balances, alone, request.is_answer)
        return True

    def _compute_balances(
        self, request: StepRequest, estimate: Estimate, answer_calls: int
    ) -> tuple[BudgetBalance, ...]:
        """Return the balances before a call, if something is reserved for so many calls that make the answer."""
        answer = (
            replace(self.answer, calls=answer_calls) if self.answer is not None and answer_calls else None
        )
        reserved = [each.amounts for each in self._in_flight.values()]
        return budget_balances(self.limits, self.meter(), reserved, estimate, answer, request.work.agent_id)

    def _count_answer_calls_to_come(self, request: StepRequest) -> int:
        """Return how many calls make the answer that are neither in flight nor this one."""
        in_flight = sum(each.is_answer for each in self._in_flight.values())
        return max(self.answer_calls - in_flight - request.is_answer, 0)

    def release(self, attempt: StepAttempt, estimate: Estimate) -> None:
        """Free the reservation of a call, and learn from its outcome which bounds its routes are trusted with."""
        reservation = self._in_flight.pop(attempt.request.key, None)
        if reservation is not None and attempt.usage.requests:
            self._trusted_bounds[estimate.routes] = self._learn_bound(reservation, attempt, estimate)
        self.notify_changed()

    def _learn_bound(self, reservation: _Reservation, attempt: StepAttempt, estimate: Estimate) -> float:
        trusted, written = self._trusted_bounds.get(estimate.routes), attempt.usage.output_tokens
        if trusted == inf or not _was_enough(reservation, attempt.usage):
            return inf
        if trusted is None:
            return written
        if trusted == 0 or attempt.bound < trusted:
            return 0
        return max(trusted, written)


def _was_enough(reservation: _Reservation, usage: Usage) -> bool:
    return all(
        each.amount(usage.input_tokens, usage.output_tokens) <= reservation.amounts[each.name]
        for each in reservation.balances
    )
