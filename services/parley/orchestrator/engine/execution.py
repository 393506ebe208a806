"""Runs a debate: its format, again after each wait, until there is an answer or a failure; then what follows the answer.

If a format stops because of providers that may recover, the debate does not fail: the wait is recorded, then the format is run
from its start, and only steps without a recorded outcome are made.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from math import inf
from typing import TypeVar

from parley.orchestrator.engine.budget import UNREACHABLE, next_wait
from parley.orchestrator.engine.checkpoints import NotifyStatus
from parley.orchestrator.engine.debate import Debate, given_up_key
from parley.orchestrator.engine.format import Format
from parley.orchestrator.engine.refusals import find_refused_steps
from parley.orchestrator.log.debate_record import RUNNING, WAITING
from parley.orchestrator.log.envelope import UnrecordableError, create_event
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.model.errors import CheckpointExpiredError, DebateFailedError, ReplayError
from parley.orchestrator.model.times import duration, seconds_of, time_of, timestamp
from parley.runtime.clock import Clock, wait_or_timeout
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.logs import get_logger
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.storage.ports import StorageError
from parley.v1.debate_pb2 import DebateFailure, DebateLimits, Outcome
from parley.v1.event_pb2 import (
    CheckpointExpired,
    Concluded,
    DebateFailed,
    Event,
    WaitFinished,
    WaitStarted,
    Warned,
)

_logger = get_logger(__name__)

_SOURCES = "sources/documents"
_REPLAY_MISMATCH = "REPLAY_MISMATCH"
_INTERNAL = "INTERNAL"

E = TypeVar("E", bound=BaseException)


class Execution:
    """One run of a debate by its owner.

    Attributes:
        is_over: Whether the run has ended, by itself or by an intervention.
        unable_reason: Why this replica cannot continue, so that another one must; empty if it can.
    """

    def __init__(
        self,
        debate: Debate,
        debate_format: Format,
        journal: Journal,
        clock: Clock,
        notify_status: NotifyStatus,
    ) -> None:
        """Prepare to run a debate."""
        self.is_over = False
        self.unable_reason = ""
        self._debate = debate
        self._format = debate_format
        self._journal = journal
        self._recorded = journal.recorded
        self._clock = clock
        self._notify_status = notify_status

    async def run(self) -> None:
        """Run until the debate is concluded, has failed, or pauses because a checkpoint expired."""
        created = self._recorded.created
        for number, warning in enumerate(created.warnings if created is not None else (), 1):
            self._debate.record_event(f"created/warning/{number}", Warned(message=warning))
        await self._list_sources()
        async with asyncio.TaskGroup() as tasks:
            self._debate.limiter.use_task_group(tasks)
            timing = tasks.create_task(self._debate.limiter.enforce_total_limit())
            goes_on = True
            while goes_on:
                self._debate.start_run()  # new events may have changed what the format sees
                goes_on = await self._run_format_once()
            timing.cancel()

    async def _list_sources(self) -> None:
        """Record once which sources the documents are."""
        documents, accepted = self._debate.documents, self._recorded.created_at
        if documents.texts and accepted is not None and _SOURCES not in self._recorded.notes:
            listed = await in_thread_if_large(documents.size, partial(documents.list_sources, accepted))
            self._debate.record_event(_SOURCES, listed)

    async def _run_format_once(self) -> bool:
        """Run the format. Return whether to run it again."""
        if self._recorded.wait is not None:
            await self._finish_wait(self._recorded.wait)
        try:
            outcome = _check_outcome(self._format, await self._format.run(self._debate))
        except Exception as error:  # noqa: BLE001 - a fault in a format fails its debate, not this replica
            return await self._handle_failure(error)
        await self._record_end(
            create_event("concluded", Concluded(outcome=outcome, ended_by=self._debate.ending))
        )
        return False

    async def _handle_failure(self, error: Exception) -> bool:
        expired = _find_first(error, CheckpointExpiredError)
        if expired is not None:
            await self._record_end(create_event(expired.key, CheckpointExpired(), self._recorded.attempt))
            return False
        storage = _find_first(error, StorageError)
        if storage is not None:
            raise storage
        failed = self._explain_failure(error)
        if failed.reason in (_REPLAY_MISMATCH, _INTERNAL) and self._journal.may_hand_over:
            self.unable_reason = str(failed)
            return False
        wait = self._plan_wait(failed)
        if wait is None and failed.has_stand_in and failed.steps_to_wait_for:
            message = f"{failed.phase} is not waited for any more: {failed}"
            await self._journal.append(create_event(given_up_key(failed.phase), Warned(message=message)))
            return True
        if wait is None:
            await self._journal.wait_until_written()  # more steps may have been refused meanwhile
            steps = dict.fromkeys((*failed.steps, *find_refused_steps(self._recorded)))
            failure = DebateFailure(
                reason=failed.reason,
                message=str(failed),
                agent_id=failed.agent,
                phase=failed.phase,
                steps=steps,
            )
            await self._record_end(
                create_event("failed", DebateFailed(failure=failure), self._recorded.attempt)
            )
            return False
        await self._journal.append(create_event(f"wait/{self._recorded.waits + 1}", wait))
        await self._notify_status(WAITING)
        return True

    def _explain_failure(self, error: Exception) -> DebateFailedError:
        mismatch = _find_first(error, ReplayError)
        if mismatch is not None:
            _logger.error("debate stopped: its replay does not match its log", error=str(mismatch))
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
        """Return the wait that follows a failure; None if a wait cannot help, or its time is over."""
        if not failed.steps_to_wait_for:
            return None
        if failed.reason == UNREACHABLE and not self._recorded.meter.written:
            return None  # nothing ever answered, so that it is not likely to be back soon
        limits, waited = self._debate.spec.limits, self._recorded.waited.get(failed.phase, 0.0)
        used = self._recorded.time.total_seconds(self._clock.monotonic())
        left = seconds_of(limits.total) - used if limits.HasField("total") else inf
        length = round(min(next_wait(waited, seconds_of(limits.waiting)), left), 3)
        if length <= 0:
            return None
        return WaitStarted(
            reason=failed.reason,
            message=str(failed),
            agent_id=failed.agent,
            phase=failed.phase,
            until=timestamp(self._clock.now() + timedelta(seconds=length)),
            length=duration(length),
            waited=duration(waited),
            steps=failed.steps_to_wait_for,
        )

    async def _finish_wait(self, wait: WaitStarted) -> None:
        # An earlier owner may have waited for a part of it.
        until = (time_of(wait.until) - self._clock.now()).total_seconds()
        left = min(wait.length.ToTimedelta().total_seconds(), until)
        with self._debate.slot.free_while_waiting():
            if self._debate.ending:
                await self._clock.sleep(left)
            else:
                await wait_or_timeout(self._debate.limiter.ended, self._clock, left)
        await self._journal.append(create_event(f"wait/{self._recorded.waits}", WaitFinished()))
        await self._notify_status(RUNNING)

    async def _record_end(self, event: Event) -> None:
        if not self.is_over:
            self.is_over = True
            await self._journal.append(event)


def _check_outcome(debate_format: Format, outcome: object) -> Outcome:
    """Return the outcome of a format. Raise TypeError if it is not an Outcome."""
    if not isinstance(outcome, Outcome):
        raise TypeError(f"format {debate_format.id} returned {type(outcome).__name__}, no Outcome")
    return outcome


def leaf_exceptions(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in a group, at any depth, or the exception itself if it is not a group."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaf_exceptions(inner)
    else:
        yield error


def _find_first(error: BaseException, kind: type[E]) -> E | None:
    return next((leaf for leaf in leaf_exceptions(error) if isinstance(leaf, kind)), None)


_logger = get_logger(__name__)

FollowUp = Callable[[Debate, Outcome, datetime], Awaitable[None]]
"""What follows an answer: called with the outcome and the time of the conclusion."""


async def run_follow_up(
    debate: Debate, journal: Journal, outcome: Outcome, follow_up: FollowUp, limits: DebateLimits
) -> None:
    """Run what follows the recorded answer, as steps of the same debate with their own limits."""
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
        # Another version started it differently. The answer is valid, and the debate must not stay open for ever.
        mismatch = str(next(leaf_exceptions(mismatches)))
        _logger.error("what follows the answer was not finished", error=mismatch)  # noqa: TRY400 - the message is enough
        warning = f"what follows the answer was not finished: {mismatch}"
        await journal.append(create_event(f"{AFTER_THE_ANSWER}mismatch", Warned(message=warning)))
