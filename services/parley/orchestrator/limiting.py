"""The limits of a debate at work: what is late is failed, and once the debate must end, nothing begins but the answer.

A limit that was reached is recorded, with the steps that were late for it, before anything follows from it. A replay
therefore comes to the same outcomes, and refuses the same steps.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from parley.orchestrator.envelope import Draft
from parley.orchestrator.events import LimitReached, StepFailed
from parley.orchestrator.flights import Flight
from parley.orchestrator.journal import Journal
from parley.orchestrator.limits import (
    COST_BUDGET,
    ROUND_TIMEOUT,
    TOKEN_BUDGET,
    TOTAL_TIMEOUT,
    budget_reached,
)
from parley.orchestrator.spec import DebateSpec
from parley.runtime.clock import Clock

__all__ = ["Limiter"]

_SHORTEST_LOOK_SECONDS = 0.05
"""Time between two looks at a running time that stands still, as it does while the debate is paused."""
_SAME_TIME_SECONDS = 0.001
_LAST_WORD_SECONDS = 1.0
"""How long a call that was stopped is waited for, to hear what it used."""

_ENDINGS = {
    TOTAL_TIMEOUT: "its time limit",
    TOKEN_BUDGET: "its budget of tokens",
    COST_BUDGET: "its budget of money",
}


class Limiter:
    """What keeps one debate to its limits.

    Attributes:
        flights: The steps that are on their way, by key.
        ending: The limit that lets nothing new begin but the answer, such as `total_timeout`; empty for none.
        ended: Set once that is recorded.
    """

    def __init__(
        self,
        spec: DebateSpec,
        journal: Journal,
        clock: Clock,
        stop_call: Callable[[str, int], Awaitable[None]],
    ) -> None:
        """Stand on a journal that is being written; `stop_call` stops the call of a step's attempt."""
        self.flights: dict[str, Flight] = {}
        self.ending = ""
        self.ended = asyncio.Event()
        self._spec = spec
        self._journal = journal
        self._recorded = journal.recorded
        self._clock = clock
        self._stop_call = stop_call

    def begin_run(self) -> None:
        """Start with no step on its way."""
        self.flights.clear()
        self.ending = self.ending or self._recorded.ending
        if self._recorded.ending:
            self.ended.set()

    async def refusal(self, flight: Flight) -> StepFailed | None:
        """Return why a call may not be made, or None where it may. A budget that it would exceed is recorded as reached.

        What an owner before had begun may be paid for, so that only the time limit refuses it.
        """
        asked = flight.asked
        if flight.is_late():
            return await flight.failure()
        if asked.key in self._recorded.late:
            return await self._fail_late(flight)
        if asked.estimate is None or asked.is_answer or (flight.started and self.ending != TOTAL_TIMEOUT):
            return None
        if not self.ending:
            flying = [each.asked.estimate for each in self.flights.values()]
            await self._end_on(budget_reached(self._spec, self._recorded.spent, flying, asked.estimate))
        if not self.ending:
            return None
        await self.ended.wait()
        message = f"not asked, since the debate had reached {_ENDINGS[self.ending]}"
        return StepFailed(asked.work, asked.digest, self.ending.upper(), message)

    async def keep_time(self) -> None:
        """End the debate when its time is over: calls in flight are late, and nothing but the answer is asked for."""
        limit = self._spec.limits.total_seconds
        if limit:
            await self._wait_until(limit, self._total)
            await self._end_on(TOTAL_TIMEOUT)

    async def keep_round(self, number: int) -> None:
        """Fail the calls of a round that are in flight whenever its limit has passed, until cancelled."""
        limit, marks = self._spec.limits.round_seconds, self._recorded.marks
        since = marks.get(f"round/{number}/started", self._worked())
        for turn in itertools.count(1):
            key = f"round/{number}/limit/{turn}"
            while key not in marks:
                await self._wait_until(since + limit, self._worked)
                late = [each for each in self._asking() if each.calling and each.asked.work.round == number]
                if late:
                    reached = LimitReached(ROUND_TIMEOUT, number, round(self._worked() - since, 3))
                    await self._reach(key, reached, late)
                since = self._worked()
            since = marks[key]

    async def _end_on(self, limit: str) -> None:
        """Let nothing new begin but the answer; once that was begun, no limit ends the debate any more."""
        answering = self._recorded.answering or any(each.asked.is_answer for each in self.flights.values())
        if not limit or self.ending or answering:
            return
        self.ending = limit
        late = self._asking() if limit == TOTAL_TIMEOUT else []
        await self._reach(f"limit/{limit}", LimitReached(limit, used=self._used(limit)), late)
        self.ended.set()

    def _used(self, limit: str) -> float:
        if limit == TOTAL_TIMEOUT:
            return round(self._total(), 3)
        spent = self._recorded.spent
        return float(spent.tokens if limit == TOKEN_BUDGET else spent.cost_micros)

    async def _reach(self, key: str, reached: LimitReached, late: Sequence[Flight]) -> None:
        """Record a limit and which steps are late for it; then stop their calls, and record what these had used."""
        for flight in late:
            flight.be_late()
            del self.flights[flight.asked.key]
        keys = tuple(flight.asked.key for flight in late)
        await self._journal.append(Draft(key, replace(reached, late=keys), self._recorded.attempt))
        # Only now is it known that the debate is still this owner's. The next one's calls have the same names.
        async with asyncio.TaskGroup() as tasks:
            for flight in late:
                tasks.create_task(self._stop(flight))
        failures = [self._failure(flight, reached.limit) for flight in late]
        drafts = [
            Draft(flight.asked.key, failed, flight.attempt)
            for flight, failed in zip(late, failures, strict=True)
        ]
        for flight, failed in zip(late, failures, strict=True):
            flight.fail(failed)
        if drafts:
            await self._journal.append(*drafts)
        for flight in late:
            flight.recorded.set()

    async def _fail_late(self, flight: Flight) -> StepFailed:
        """Record the failure of a step that an owner before had found late, and could not record."""
        asked = flight.asked
        failed = self._failure(flight, self._recorded.late[asked.key])
        await self._stop_call(asked.key, flight.attempt)
        await self._journal.append(Draft(asked.key, failed, flight.attempt))
        return failed

    def _failure(self, flight: Flight, limit: str) -> StepFailed:
        limits = self._spec.limits
        if limit == ROUND_TIMEOUT:
            message = f"no answer within the round's limit of {limits.round_seconds:g} s"
        else:
            message = f"no answer within the debate's limit of {limits.total_seconds:g} s"
        return StepFailed(flight.asked.work, flight.asked.digest, limit.upper(), message, flight.usage)

    async def _stop(self, flight: Flight) -> None:
        await self._stop_call(flight.asked.key, flight.attempt)
        await flight.call_ended(_LAST_WORD_SECONDS)

    def _asking(self) -> list[Flight]:
        """Return the steps of agents that are on their way."""
        return [each for each in self.flights.values() if each.asked.estimate is not None]

    async def _wait_until(self, reading: float, read: Callable[[], float]) -> None:
        """Wait until a running time has come so far; it may stand still meanwhile."""
        while (left := reading - read()) > _SAME_TIME_SECONDS:
            await self._clock.sleep(max(left, _SHORTEST_LOOK_SECONDS))

    def _worked(self) -> float:
        return self._recorded.time.worked(self._clock.monotonic())

    def _total(self) -> float:
        return self._recorded.time.total(self._clock.monotonic())
