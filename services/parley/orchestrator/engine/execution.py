"""Executing a debate: its format is run, and run again after each wait, until it comes to an answer or cannot go on.

A format that stops on providers that may come back is not failed: the wait is recorded, and the format is then run from
its start, which does what the log does not hold.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta
from math import inf
from typing import TypeVar

from parley.orchestrator.engine.budget import next_wait
from parley.orchestrator.engine.checkpoints import NotifyStatus
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format
from parley.orchestrator.engine.steps import wait_or_timeout
from parley.orchestrator.log.envelope import Draft, UnrecordableError
from parley.orchestrator.log.index import RUNNING, WAITING
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.model.errors import CheckpointExpiredError, DebateFailedError, ReplayError
from parley.orchestrator.model.spec import Limits
from parley.orchestrator.model.times import duration, time_of, timestamp
from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger
from parley.storage.ports import StorageError
from parley.v1.debate_pb2 import DebateFailure, Outcome
from parley.v1.event_pb2 import CheckpointExpired, Concluded, DebateFailed, WaitFinished, WaitStarted, Warned

__all__ = ["Execution", "FollowUp", "leaf_exceptions", "run_follow_up"]

_logger = get_logger(__name__)

_REPLAY_MISMATCH = "REPLAY_MISMATCH"
_INTERNAL = "INTERNAL"
_MAX_CLAIMS = 5
"""Owners in a row that may give a debate up since they cannot go on with it; the next one fails it."""

E = TypeVar("E", bound=BaseException)


class Execution:
    """The work on one debate.

    Attributes:
        over: Set by whoever ends the work first: it by itself, or an intervention.
        unable: Why another replica is to go on with what was taken over, since this one cannot; empty where it can.
    """

    def __init__(
        self, debate: Debate, debate_format: Format, journal: Journal, clock: Clock, tell_status: NotifyStatus
    ) -> None:
        """Prepare to work."""
        self.is_over = False
        self.unable_reason = ""
        self._debate = debate
        self._format = debate_format
        self._journal = journal
        self._recorded = journal.recorded
        self._clock = clock
        self._notify_status = tell_status

    async def run(self) -> None:
        """Work until the debate is concluded, has failed, or is to pause since nobody came to a checkpoint."""
        created = self._recorded.created
        for number, warning in enumerate(created.warnings if created is not None else (), 1):
            self._debate.record_event(f"created/warning/{number}", Warned(message=warning))
        async with asyncio.TaskGroup() as tasks:
            self._debate.limiter.use_task_group(tasks)
            timing = tasks.create_task(self._debate.limiter.enforce_total_limit())
            goes_on = True
            while goes_on:
                self._debate.start_run()  # what was recorded since may have changed what the debate stands on
                goes_on = await self._run_format_once()
            timing.cancel()

    async def _run_format_once(self) -> bool:
        """Run the format; return whether it is to be run again."""
        if self._recorded.wait is not None:
            await self._finish_wait(self._recorded.wait)
        try:
            outcome = _check_outcome(self._format, await self._format.run(self._debate))
        except Exception as error:  # noqa: BLE001 - a fault in a format ends its debate visibly, not this replica
            return await self._handle_failure(error)
        await self._record_end(Draft("concluded", Concluded(outcome=outcome, ended_by=self._debate.ending)))
        return False

    async def _handle_failure(self, error: Exception) -> bool:
        expired = _find_first(error, CheckpointExpiredError)
        if expired is not None:
            await self._journal.append(Draft(expired.key, CheckpointExpired(), self._recorded.attempt))
            return False
        storage = _find_first(error, StorageError)
        if storage is not None:
            raise storage
        failed = self._explain_failure(error)
        if failed.reason in (_REPLAY_MISMATCH, _INTERNAL) and self._may_hand_over():
            self.unable_reason = str(failed)
            return False
        wait = self._plan_wait(failed)
        if wait is None:
            failure = DebateFailure(
                reason=failed.reason,
                message=str(failed),
                agent_id=failed.agent,
                phase=failed.phase,
                steps=failed.steps,
            )
            await self._record_end(Draft("failed", DebateFailed(failure=failure), self._recorded.attempt))
            return False
        await self._journal.append(Draft(f"wait/{self._recorded.waits + 1}", wait))
        await self._notify_status(WAITING)
        return True

    def _may_hand_over(self) -> bool:
        """Return whether another version may have begun this, and may be there to go on with it."""
        return self._journal.epoch > self._recorded.attempt_epoch and self._recorded.claims < _MAX_CLAIMS

    def _explain_failure(self, error: Exception) -> DebateFailedError:
        mismatch = _find_first(error, ReplayError)
        if mismatch is not None:
            _logger.error("debate stopped: it does not do again what its log holds", error=str(mismatch))
            return DebateFailedError(_REPLAY_MISMATCH, str(mismatch))
        failed = _find_first(error, DebateFailedError)
        if failed is not None:
            return failed
        unrecordable = _find_first(error, UnrecordableError)
        if unrecordable is not None:
            return DebateFailedError("UNRECORDABLE", str(unrecordable))
        fault = uuid.uuid4().hex[:8]
        _logger.error("a format failed", fault=fault, exc_info=error)
        return DebateFailedError(_INTERNAL, f"internal error {fault}; the orchestrator's log has more")

    def _plan_wait(self, failed: DebateFailedError) -> WaitStarted | None:
        """Return the wait that a failure leads to; None where nothing may come of it, or its time is over."""
        if not failed.steps_to_wait_for:
            return None
        limits, waited = self._debate.spec.limits, self._recorded.waited.get(failed.phase, 0.0)
        used = self._recorded.time.total_seconds(self._clock.monotonic())
        left = limits.total_seconds - used if limits.total_seconds else inf
        seconds = round(min(next_wait(waited, limits.waiting_seconds), left), 3)
        if seconds <= 0:
            return None
        return WaitStarted(
            reason=failed.reason,
            message=str(failed),
            agent_id=failed.agent,
            phase=failed.phase,
            until=timestamp(self._clock.now() + timedelta(seconds=seconds)),
            length=duration(seconds),
            waited=duration(waited),
            steps=failed.steps_to_wait_for,
        )

    async def _finish_wait(self, wait: WaitStarted) -> None:
        # An owner before may have waited for a part of it.
        until = (time_of(wait.until) - self._clock.now()).total_seconds()
        left = min(wait.length.ToTimedelta().total_seconds(), until)
        with self._debate.slot.free_while_waiting():
            if self._debate.ending:
                await self._clock.sleep(left)
            else:
                await wait_or_timeout(self._debate.limiter.ended, self._clock, left)
        await self._journal.append(Draft(f"wait/{self._recorded.waits}", WaitFinished()))
        await self._notify_status(RUNNING)

    async def _record_end(self, draft: Draft) -> None:
        if not self.is_over:
            self.is_over = True
            await self._journal.append(draft)


def _check_outcome(debate_format: Format, outcome: object) -> Outcome:
    """Return what a format came to. Raises TypeError for anything that is no outcome."""
    if not isinstance(outcome, Outcome):
        raise TypeError(f"format {debate_format.id} returned {type(outcome).__name__}, no Outcome")
    return outcome


def leaf_exceptions(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions that a group holds, however deep; any other is its own only one."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaf_exceptions(inner)
    else:
        yield error


def _find_first(error: BaseException, kind: type[E]) -> E | None:
    return next((leaf for leaf in leaf_exceptions(error) if isinstance(leaf, kind)), None)


_logger = get_logger(__name__)

FollowUp = Callable[[Debate, Outcome, datetime], Awaitable[None]]
"""What follows from an answer: it is told the outcome, and when the debate was concluded."""


async def run_follow_up(
    debate: Debate, journal: Journal, outcome: Outcome, follow_up: FollowUp, limits: Limits
) -> None:
    """Do what follows from the answer that the journal holds."""
    at = journal.recorded.concluded_at
    assert at is not None
    debate.start_follow_up(limits)
    try:
        async with asyncio.TaskGroup() as tasks:
            debate.limiter.use_task_group(tasks)
            timing = tasks.create_task(debate.limiter.enforce_total_limit())
            await follow_up(debate, outcome, at)
            timing.cancel()
    except ExceptionGroup as group:
        mismatches, others = group.split(ReplayError)
        if others is not None or mismatches is None:
            raise
        # Another version had begun it otherwise; the answer stands, and the debate is not to stay open for ever.
        mismatch = str(next(leaf_exceptions(mismatches)))
        _logger.error("what follows the answer was left undone", error=mismatch)  # noqa: TRY400 - it says it all
        warning = f"what follows the answer was left undone: {mismatch}"
        await journal.append(Draft("after/mismatch", Warned(message=warning)))
