"""Runs each step once: returns its recorded outcome, or makes calls until there is an outcome, and records it."""

from asyncio import Event, Semaphore
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext

from parley.orchestrator.engine.budget import is_short_lived
from parley.orchestrator.engine.call_admission import Gate, Slot
from parley.orchestrator.engine.limiter import Limiter
from parley.orchestrator.engine.steps import StepAttempt, StepRequest
from parley.orchestrator.log.envelope import UnrecordableError, create_event
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.log.replay import Outcome
from parley.orchestrator.model.errors import ReplayError, ServiceUnavailableError, StepError
from parley.orchestrator.model.times import duration
from parley.runtime.backoff import Backoff
from parley.runtime.clock import Clock, wait_or_timeout
from parley.v1.event_pb2 import StepFailed, StepStarted, StepSucceeded

_UNRECORDABLE = "UNRECORDABLE"
_RETRY_AFTER_SECONDS = 5.0
"""Seconds between a failure that may pass soon and the second try."""
_BACKOFF = Backoff(first=0.2, maximum=5.0)

MakeCall = Callable[[StepAttempt], Awaitable[StepSucceeded]]
"""Makes the call of an attempt. Raises StepError for a failure, ServiceUnavailableError if there is no outcome."""


class StepRunner:
    """Runs the steps of one debate.

    Attributes:
        gate: The gate at which calls wait while the debate is paused.
        limiter: Enforces the limits of the debate.
    """

    def __init__(
        self, journal: Journal, clock: Clock, limiter: Limiter, slot: Slot, concurrency: Mapping[str, int]
    ) -> None:
        """`concurrency` is the number of concurrent calls by label; a label that is missing has no limit."""
        self.gate = Gate()
        self.limiter = limiter
        self._journal = journal
        self._recorded = journal.recorded
        self._clock = clock
        self._slot = slot
        self._concurrency = {label: Semaphore(count) for label, count in concurrency.items()}

    async def run(self, request: StepRequest, call: MakeCall) -> Outcome:
        """Return the outcome of a step, recorded before or now.

        Raises:
            ReplayError: the recorded step with this key requests something else.
        """
        number, recorded = self._look_up(request)
        if recorded is not None and not self._should_retry(request, number, recorded):
            return recorded
        with self._slot.track_step():
            outcome = recorded or await self._make_attempt(request, number, call)
            if self._should_retry(request, number, outcome):
                # A limit that was reached meanwhile refuses the second try, also in a replay.
                await wait_or_timeout(self.limiter.ended, self._clock, _RETRY_AFTER_SECONDS)
                outcome = await self._make_attempt(request, 2, call)
            return outcome

    def _should_retry(self, request: StepRequest, number: int, outcome: Outcome) -> bool:
        return request.retry_once and may_be_retried(number, outcome)

    async def _make_attempt(self, request: StepRequest, number: int, call: MakeCall) -> Outcome:
        attempt = StepAttempt(request, number, started=(request.key, number) in self._recorded.started)
        async with self._concurrency_limit(request), self.limiter.reserve(attempt):
            try:
                return await attempt.run_with_limits(self._call_until_outcome(attempt, call))
            finally:
                self.limiter.in_flight.pop(request.key, None)

    def _look_up(self, request: StepRequest) -> tuple[int, Outcome | None]:
        """Return the number of the present attempt at a step, and its recorded outcome or None."""
        key, number = request.key, 1
        if key in self._recorded.outcomes:
            number, recorded = self._recorded.outcomes[key]
            _check_same_request(key, recorded.digest, request.digest)
            if self._is_valid(request, recorded):
                return number, recorded
            number += 1
        started = self._recorded.started.get((key, number))
        if started is not None:
            _check_same_request(key, started.digest, request.digest)
        return number, None

    def _is_valid(self, request: StepRequest, recorded: Outcome) -> bool:
        """Return whether a recorded outcome counts; if not, the step is asked again, as a new attempt."""
        if request.key in self._recorded.retried and (not self.limiter.ending or request.is_answer):
            return False
        if request.shape is None or not isinstance(recorded, StepSucceeded) or not recorded.HasField("reply"):
            return True
        if request.can_read(recorded.reply.text):
            return True
        if self._journal.may_hand_over:
            raise ReplayError(f"the recorded answer of step {request.key} cannot be read by this version")
        return False

    def _concurrency_limit(self, request: StepRequest) -> AbstractAsyncContextManager[object]:
        return self._concurrency.get(request.concurrency) or nullcontext()

    async def _call_until_outcome(self, attempt: StepAttempt, call: MakeCall) -> Outcome:
        request = attempt.request
        for pause in _BACKOFF.pauses():
            async with self.gate, self._slot:
                if request.scopes & self.limiter.left_out:
                    await Event().wait()  # its task is stopped soon
                refused = await self.limiter.check_limits(attempt)
                if refused is not None:
                    return refused
                if attempt.is_late():
                    return await attempt.wait_for_failure()
                if not attempt.started:
                    started = StepStarted(
                        work=request.work,
                        digest=request.digest,
                        is_answer=request.is_answer,
                        is_structured=request.shape is not None,
                    )
                    self._journal.enqueue(create_event(request.key, started, attempt.number))
                    attempt.started = True
                self.limiter.in_flight[request.key] = attempt
                if request.asks_agent:
                    # What it is asked rests on these. What follows from a step seldom starts before the steps beside it have ended, too.
                    await self._journal.write_outcomes(may_wait=self.limiter.is_calling)
                    if attempt.is_late():
                        return await attempt.wait_for_failure()
                outcome = await self._call_once(attempt, call)
                if attempt.is_late():
                    return await attempt.wait_for_failure()
                if outcome is not None:
                    del self.limiter.in_flight[request.key]  # from here on no limit can change it
                    return await self._record_outcome(attempt, outcome)
            # Outside of the gate, so that a pause does not wait for this.
            await self._clock.sleep(pause)
        raise AssertionError

    async def _record_outcome(self, attempt: StepAttempt, outcome: Outcome) -> Outcome:
        """Record an outcome and return it. If it cannot be recorded, the step fails."""
        request = attempt.request
        try:
            event = create_event(request.key, outcome, attempt.number)
            if request.asks_agent and isinstance(outcome, StepFailed):
                await self._journal.append(event)  # no gateway keeps a failure: it would be asked again
            else:
                self._journal.record(event, is_paid=request.asks_agent)
        except UnrecordableError as error:
            outcome = StepFailed(
                work=request.work,
                digest=request.digest,
                reason=_UNRECORDABLE,
                message=str(error),
                usage=attempt.usage,
            )
            self._journal.record(create_event(request.key, outcome, attempt.number))
        return outcome

    async def _call_once(self, attempt: StepAttempt, call: MakeCall) -> Outcome | None:
        """Return the outcome of a call, or None if a service was unavailable: that is no outcome and never recorded."""
        started_at = self._clock.monotonic()
        with attempt.track_call():
            try:
                succeeded = await call(attempt)
            except StepError as error:
                attempt.usage, attempt.partial_text = error.usage, error.partial_text
                took = round(self._clock.monotonic() - started_at, 3)
                request = attempt.request
                return StepFailed(
                    work=request.work,
                    digest=request.digest,
                    reason=error.reason,
                    message=str(error),
                    usage=error.usage,
                    latency=duration(took),
                    partial_text=error.partial_text,
                )
            except ServiceUnavailableError as error:
                attempt.usage, attempt.partial_text = error.usage, error.partial_text
                return None
            if succeeded.HasField("reply"):
                attempt.usage = succeeded.reply.usage
            return succeeded


def may_be_retried(number: int, outcome: Outcome) -> bool:
    """Return whether the outcome of this attempt is one after which some steps are tried once more."""
    return number == 1 and isinstance(outcome, StepFailed) and is_short_lived(outcome.reason)


def _check_same_request(key: str, before: str, now: str) -> None:
    if before != now:
        raise ReplayError(f"step {key} asks something else than when it was recorded")
