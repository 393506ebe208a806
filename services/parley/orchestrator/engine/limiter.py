"""Enforces the limits of a debate: late steps fail, and once the debate must end, only the answer may still start.

A reached limit is recorded, with the steps that are late, before it has any effect. So a replay gets the same outcomes and
refuses the same steps.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from msgspec import Struct

from parley.orchestrator.engine.budget import AnswerReserve, Estimate
from parley.orchestrator.engine.reservations import Reservations
from parley.orchestrator.engine.steps import StepAttempt
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.log.replay import SETTLED
from parley.orchestrator.model.limits import COST_BUDGET, ROUND_TIMEOUT, TOKEN_BUDGET, TOTAL_TIMEOUT
from parley.orchestrator.model.times import seconds_of
from parley.runtime.clock import Clock
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import DebateLimits, Work
from parley.v1.event_pb2 import Event, LimitReached, Settled, StepFailed

_MIN_POLL_SECONDS = 0.05
"""How often a running time is read that may stand still, as it does in a pause."""
_SAME_TIME_SECONDS = 0.001
_CALL_END_SECONDS = 1.0
"""How long to wait for the usage of a stopped call."""

_ENDINGS = {
    TOTAL_TIMEOUT: "its time limit",
    TOKEN_BUDGET: "its budget of tokens",
    COST_BUDGET: "its budget of money",
}


class Budget(Struct, frozen=True):
    """The limits of a part of a debate.

    Attributes:
        label: Whose limits these are, for messages.
        answer: What is reserved for the answer until it exists; None after it.
        share: A call may reserve one part in so many of what is left.
        bounds_services: Whether the time limit also ends steps of services, not only those of agents.
    """

    limits: DebateLimits
    label: str = "the debate's"
    answer: AnswerReserve | None = None
    share: int = 1
    bounds_services: bool = False


class Limiter:
    """Enforces the limits of one debate.

    Attributes:
        in_flight: The steps in progress, by key.
        left_out: The groups of steps that must not start any more, since enough others have ended.
        ending: The limit after which only the answer may still start, such as `total_timeout`; empty if none was reached.
        ended: Set once that is recorded.
    """

    def __init__(
        self,
        budget: Budget,
        journal: Journal,
        clock: Clock,
        stop_call: Callable[[str, int], Awaitable[Usage]],
    ) -> None:
        """Use a journal whose writer runs. `stop_call` stops the call of a step's attempt and returns its usage."""
        self.in_flight: dict[str, StepAttempt] = {}
        self.left_out: set[str] = set()
        self.ending = ""
        self.ended = asyncio.Event()
        self._budget = budget
        self._journal = journal
        self._recorded = journal.recorded
        self._clock = clock
        self._stop_call = stop_call
        self._tasks: asyncio.TaskGroup | None = None
        self._reservations = Reservations(
            budget.limits, lambda: journal.recorded.meter, budget.answer, budget.share
        )

    @property
    def is_calling(self) -> bool:
        """Whether a call is in flight."""
        return any(each.is_calling for each in self.in_flight.values())

    def use_task_group(self, tasks: asyncio.TaskGroup) -> None:
        """Record limits in this task group, since the step that reached a limit may be stopped meanwhile."""
        self._tasks = tasks

    def expect_answer_calls(self, count: int) -> None:
        """Reserve for so many calls that make the answer and have no outcome yet."""
        self._reservations.answer_calls = count
        self._reservations.notify_changed()

    def count_answer_call(self) -> None:
        """Note that one of the calls that make the answer has an outcome."""
        self.expect_answer_calls(max(self._reservations.answer_calls - 1, 0))

    def start_run(self) -> None:
        """Start a run without steps in progress."""
        self.in_flight.clear()
        self.left_out.clear()
        self._reservations.clear()
        self.ending = self.ending or self._recorded.ending
        if self._recorded.ending:
            self.ended.set()

    def reserve(self, attempt: StepAttempt) -> AbstractAsyncContextManager[None]:
        """Reserve what a call may use while the block runs. Before that, wait while the reservations of others leave too little."""
        estimate = attempt.request.estimate
        if estimate is None or not self._reservations.has_budget:
            return nullcontext()
        return self._reserve(attempt, estimate)

    @asynccontextmanager
    async def _reserve(
        self, attempt: StepAttempt, make_estimate: Callable[[], Awaitable[Estimate]]
    ) -> AsyncIterator[None]:
        estimate, is_answer = await make_estimate(), attempt.request.is_answer
        while not self._reservations.try_reserve(
            attempt,
            estimate,
            must=is_answer or attempt.started,
            may_wait=not attempt.started and (is_answer or not self.ending),
        ):
            await self._reservations.wait_for_change()
        try:
            yield
        finally:
            self._reservations.release(attempt, estimate)

    async def check_limits(self, attempt: StepAttempt) -> StepFailed | None:
        """Return the failure of a call that a limit forbids, or None. A limit that it would exceed is recorded as reached.

        A call that an earlier owner started may be paid for already, so only the time limit refuses it.
        """
        request = attempt.request
        if attempt.is_late():
            return await attempt.wait_for_failure()
        if request.key in self._recorded.late:
            return await self._fail_late(request.key, request.work, request.digest, attempt.number)
        if not self._is_bound(attempt) or (attempt.started and self.ending != TOTAL_TIMEOUT):
            return None
        if not self.ending:
            await self._end_for_limit(self._find_exceeded_limit(attempt))
        if not self.ending:
            return None
        await self.ended.wait()
        return StepFailed(
            work=request.work,
            digest=request.digest,
            reason=self.ending.upper(),
            message=f"not asked, since the debate had reached {_ENDINGS[self.ending]}",
        )

    async def enforce_total_limit(self) -> None:
        """End the debate when its time is over: calls in flight are late, and only the answer may still start.

        Once the answer has started, the limit only applies to other steps.
        """
        limit = seconds_of(self._budget.limits.total)
        if limit:
            await self._wait_until(limit, self._total_seconds)
            if self._steps_to_limit() or not self._is_answering():
                await self._end_for_limit(TOTAL_TIMEOUT)

    async def enforce_round_limit(self, number: int) -> None:
        """Fail the calls of a round that are in flight whenever its limit has passed, until cancelled."""
        limit, recorded = seconds_of(self._budget.limits.round), self._recorded
        since = recorded.round_marks.get(number, self._work_seconds())
        while True:
            await self._wait_until(since + limit, self._work_seconds)
            late = [
                each
                for each in self._steps_to_limit()
                if each.is_calling and each.request.work.round == number
            ]
            if late:
                key = f"limit/round/{number}/{recorded.round_limits.get(number, 0) + 1}"
                used = round(self._work_seconds() - since, 3)
                reached = LimitReached(limit=ROUND_TIMEOUT, round=number, used=used, late=_keys(late))
                self._mark_late(late)
                await self._fail_steps(create_event(key, reached, recorded.attempt), late, ROUND_TIMEOUT)
                since = recorded.round_marks[number]
            else:
                since = self._work_seconds()

    async def stop_left_out(self, key: str, counted: Iterable[str], left_out: Sequence[str]) -> None:
        """Record which of several steps counted. Then stop the steps in progress of the groups that are left out."""
        scopes = {f"{key}/{name}" for name in left_out}
        self.left_out |= scopes  # nothing would stop a step that these start from now on
        late = [each for each in self.in_flight.values() if each.request.scopes & scopes]
        settled = Settled(counted=counted, left_out=left_out, late=_keys(late))
        self._mark_late(late)
        await self._fail_steps(create_event(key, settled), late, SETTLED)

    async def fail_left_out(self, settled: Settled) -> None:
        """Record the failures of steps that an earlier owner left out and could not record."""
        async with asyncio.TaskGroup() as tasks:
            for key in settled.late:
                if key in self._recorded.late:
                    number = max(attempt for step, attempt in self._recorded.started if step == key)
                    started = self._recorded.started[key, number]
                    tasks.create_task(self._fail_late(key, started.work, started.digest, number))

    def _is_bound(self, attempt: StepAttempt) -> bool:
        """Return whether limits apply to a step."""
        request = attempt.request
        return not request.is_answer and (request.asks_agent or self._budget.bounds_services)

    def _steps_to_limit(self) -> list[StepAttempt]:
        """Return the steps in progress that limits apply to."""
        return [each for each in self.in_flight.values() if self._is_bound(each)]

    def _is_answering(self) -> bool:
        return bool(self._recorded.answer) or any(each.request.is_answer for each in self.in_flight.values())

    def _find_exceeded_limit(self, attempt: StepAttempt) -> str:
        """Return the limit that a call would exceed, or that was exceeded while only the answer was in progress; else an empty text."""
        limit = seconds_of(self._budget.limits.total)
        if limit and self._total_seconds() >= limit:
            return TOTAL_TIMEOUT
        return attempt.exceeds

    async def _end_for_limit(self, limit: str) -> None:
        """Record a limit, if any. Only the answer may start from now on."""
        if not limit or self.ending:
            return
        self.ending = limit
        self._reservations.notify_changed()
        late = self._steps_to_limit() if limit == TOTAL_TIMEOUT else []
        reached = LimitReached(limit=limit, used=self._usage_of_limit(limit), late=_keys(late))
        part = AFTER_THE_ANSWER if self._recorded.concluded else ""
        event = create_event(f"{part}limit/{limit}", reached, self._recorded.attempt)
        self._mark_late(late)
        assert self._tasks is not None
        await asyncio.shield(self._tasks.create_task(self._record_end(event, late, limit)))

    async def _record_end(self, event: Event, late: Sequence[StepAttempt], limit: str) -> None:
        await self._fail_steps(event, late, limit)
        self.ended.set()

    def _usage_of_limit(self, limit: str) -> float:
        if limit == TOTAL_TIMEOUT:
            return round(self._total_seconds(), 3)
        meter = self._recorded.meter
        return float(meter.tokens if limit == TOKEN_BUDGET else meter.cost_micros)

    def _mark_late(self, late: Sequence[StepAttempt]) -> None:
        """Mark steps as late, so that their calls cannot end them any more."""
        for attempt in late:
            attempt.mark_late()
            del self.in_flight[attempt.request.key]

    async def _fail_steps(self, event: Event, late: Sequence[StepAttempt], reason: str) -> None:
        """Record why steps are late. Then stop their calls, and record the failures with what the calls used."""
        await self._journal.append(event)
        # The append has shown that this owner still has the debate. A later owner's calls would have the same names.
        async with asyncio.TaskGroup() as tasks:
            for attempt in late:
                tasks.create_task(self._stop_attempt(attempt))
        events = []
        for attempt in late:
            request = attempt.request
            failed = self._failure(request.work, request.digest, reason, attempt.usage)
            failed.partial_text = attempt.partial_text
            events.append(create_event(request.key, failed, attempt.number))
            attempt.fail(failed)
        if events:
            await self._journal.append(*events)
        for attempt in late:
            attempt.recorded.set()

    async def _fail_late(self, key: str, work: Work, digest: str, number: int) -> StepFailed:
        """Record the failure of a step that was late at an earlier owner, which could not record it."""
        used = await self._stop_call(key, number) if work.agent_id else Usage()
        failed = self._failure(work, digest, self._recorded.late[key], used)
        await self._journal.append(create_event(key, failed, number))
        return failed

    def _failure(self, work: Work, digest: str, reason: str, usage: Usage) -> StepFailed:
        limits = self._budget.limits
        messages = {
            ROUND_TIMEOUT: f"no answer within the round's limit of {seconds_of(limits.round):g} s",
            SETTLED: "stopped, since enough others were in",
        }
        otherwise = f"no answer within {self._budget.label} limit of {seconds_of(limits.total):g} s"
        message = messages.get(reason, otherwise)
        return StepFailed(work=work, digest=digest, reason=reason.upper(), message=message, usage=usage)

    async def _stop_attempt(self, attempt: StepAttempt) -> None:
        if attempt.request.asks_agent:
            used = await self._stop_call(attempt.request.key, attempt.number)
            await attempt.wait_for_call_end(_CALL_END_SECONDS)
            if not attempt.usage.requests:
                attempt.usage = used

    async def _wait_until(self, reading: float, read: Callable[[], float]) -> None:
        """Wait until a running time reaches a value. The time may stand still meanwhile."""
        while (left := reading - read()) > _SAME_TIME_SECONDS:
            await self._clock.sleep(max(left, _MIN_POLL_SECONDS))

    def _work_seconds(self) -> float:
        return self._recorded.time.work_seconds(self._clock.monotonic())

    def _total_seconds(self) -> float:
        return self._recorded.time.total_seconds(self._clock.monotonic())


def _keys(attempts: Iterable[StepAttempt]) -> list[str]:
    return [each.request.key for each in attempts]
