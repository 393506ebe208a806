"""The runs of stored calls at this replica: claimed or waited for, answered, and written to the store.

The call's document says what a run has to do: return the stored answer, wait for the replica that runs the call, or
run it. A store that does not answer is asked again, and no write is left half way.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from grpc import StatusCode

from parley.gateway.calls.store import CallState, CallStore, StoredCall, answer_fields, failure_fields
from parley.gateway.calls.stream import CallFailed, Digest, RunningCall
from parley.gateway.failures import CALL_CANCELLED, Failure
from parley.runtime.backoff import Backoff, retry
from parley.runtime.clock import SystemClock
from parley.runtime.errors import ParleyError, failed_precondition
from parley.runtime.logs import get_logger
from parley.storage.ports import Fields, StorageError, StoreUnavailableError
from parley.v1.agent_pb2 import Usage
from parley.v1.gateway_pb2 import GenerateCompleted

BACKOFF: Final = Backoff(first=0.05, maximum=1.0)
# calls and leases go by the machine's time, and so does the patience with their store
_CLOCK: Final = SystemClock()

T = TypeVar("T")

_logger = get_logger(__name__)


async def retry_while_unavailable(action: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Return the action's result; a store that does not answer is asked again for so many seconds."""
    return await retry(action, on=StoreUnavailableError, backoff=BACKOFF, clock=_CLOCK, seconds=seconds)


async def finish_write(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a write that is not left half way: a caller that is cancelled meanwhile gets the cancellation afterwards."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()):  # no caller gets it
            _logger.warning("a write of a stopped call failed", error=str(error))
        raise


_LOOKS: Final = Backoff(first=0.05, maximum=0.5, factor=1.25)
"""The pauses between two looks at a call that runs elsewhere."""


class LeaseWait:
    """A wait for another replica's answer, and for the end of its lease by this one's own clock."""

    def __init__(self, store: CallStore, lease_seconds: float) -> None:
        self._store = store
        self._lease = lease_seconds
        self._pauses = _LOOKS.pauses()
        self._heartbeats = -1
        self._since = self._look_at = 0.0
        self.run = ""
        """The run that is waited for."""

    async def wait_for_lease_end(self, key: str, seen: StoredCall) -> bool:
        """Wait a moment, and return whether the replica that runs the call has been silent for a whole lease."""
        now = asyncio.get_running_loop().time()
        if seen.run != self.run:
            self.run, self._heartbeats, self._look_at = seen.run, -1, now
        if now >= self._look_at:
            await self._store.mark_wanted(key, seen.run)
            heartbeats = await self._store.count_heartbeats(seen.replica)
            if heartbeats != self._heartbeats:
                self._heartbeats, self._since = heartbeats, now
            elif now - self._since >= self._lease:
                return True
            self._look_at = now + self._lease / 5
        await asyncio.sleep(min(next(self._pauses), self._lease / 5))
        return False


_HOLD_SECONDS: Final = 2.0
"""How long an answer whose caller has it already waits for the step that this one records: then it need not be stored."""
_CLAIM_SECONDS: Final = 3.0
"""How long a store that does not answer is asked again before a call begins."""

Answerer = Callable[[RunningCall], Coroutine[Any, Any, GenerateCompleted]]
"""Asks the routes, and reports to the call."""


class StoredRuns:
    """The stored calls that this replica makes, or waits for.

    `alone` says that no other replica uses the store, so that a call of another one belongs to a process that is gone.
    """

    def __init__(self, store: CallStore, lease_seconds: float, *, alone: bool) -> None:
        self._store = store
        self._lease = lease_seconds
        self._alone = alone
        self._owned: dict[str, RunningCall] = {}
        self._unrecorded: dict[str, tuple[str, CallState, Fields]] = {}
        self._is_store_away = False

    @property
    def any_open(self) -> bool:
        """Whether this replica makes a call now, or has one to write down."""
        return bool(self._owned or self._unrecorded)

    def owns(self, running: RunningCall) -> bool:
        """Return whether it is this replica that asks the routes."""
        return any(each is running for each in self._owned.values())

    async def complete(self, key: str, running: RunningCall, answerer: Answerer) -> GenerateCompleted:
        """Return the answer of a call: the stored one, that of another replica, or one that is asked for here."""
        waiting = LeaseWait(self._store, self._lease)
        while True:
            run = self._store.name_run()
            try:
                found = await self._find_or_claim(key, run, running, waiting)
                if found is not None:
                    return found
                completed = await self._run(key, run, running, answerer)
            except asyncio.CancelledError:
                await self._give_up(key, run, running)
                raise
            if completed is not None:
                return completed

    async def _find_or_claim(
        self, key: str, run: str, running: RunningCall, waiting: LeaseWait
    ) -> GenerateCompleted | None:
        """Return the answer that is stored, at once or in the end; None if the call is this run's to make."""
        seen: StoredCall | None = None  # as nearly every call is a new one
        while True:
            running.meter.earlier = None if seen is None else seen.owed  # before: the claim may be cut short
            try:
                if await self._claim(key, run, running.digest, seen):
                    return None
            except StoreUnavailableError:
                await asyncio.sleep(BACKOFF.first)
            while (
                seen := await retry_while_unavailable(lambda: self._store.look(key), _CLAIM_SECONDS)
            ) is not None:
                if seen.run == run:  # a claim of unknown outcome went through
                    running.meter.earlier = seen.owed
                    return None
                answered = _read_outcome(seen, running.digest, waiting.run)
                if answered is not None:
                    return answered
                if seen.run in self._unrecorded:
                    await retry_while_unavailable(self.record_unrecorded, _CLAIM_SECONDS)
                elif seen.state is not CallState.RUNNING or await self._may_take_over(key, seen, waiting):
                    break

    async def _claim(self, key: str, run: str, digest: Digest, seen: StoredCall | None) -> bool:
        if self._alone:  # no other replica looks whether the call is made
            await self.record_unrecorded()  # this call's own answer may be among them
            if self._is_store_away:  # as a full disk: it can be read, but what the call costs not be kept
                raise StoreUnavailableError("outcomes of earlier calls cannot be written")
            return await self._store.claim_late(key, run, digest, seen)
        return await finish_write(self._store.claim(key, run, digest, seen))

    async def _may_take_over(self, key: str, seen: StoredCall, waiting: LeaseWait) -> bool:
        """Return whether a running call has lost its replica. This one's own earlier runs are over: it runs one at a time."""
        return (
            self._alone or seen.replica == self._store.replica or await waiting.wait_for_lease_end(key, seen)
        )

    async def _run(
        self, key: str, run: str, running: RunningCall, answerer: Answerer
    ) -> GenerateCompleted | None:
        """Answer the call; None if another replica has taken it over meanwhile. Raise CallFailed."""
        self._owned[run] = running
        try:
            completed = await complete_call(running, answerer)
        except Failure as failure:
            usage = running.meter.usage()
            await self._record(key, run, CallState.FAILED, failure_fields(failure, usage))
            raise CallFailed(failure, usage) from None
        except Exception:
            await self._record(key, run, CallState.RELEASED, {})
            raise
        else:
            if self._alone:  # no other replica can have made the call, too
                running.hand_on(completed)
                if running.only_recorders and await self._is_recorded(key, run, running, completed):
                    self._store.leave_out(run)
                    return completed
            if await self._store_answer(key, run, completed):
                return completed
            await self._check_for_cancel(key, run, completed.usage)
            return None
        finally:
            del self._owned[run]

    async def _is_recorded(
        self, key: str, run: str, running: RunningCall, completed: GenerateCompleted
    ) -> bool:
        """Return whether the listener records the answer within a moment. A call that is stopped meanwhile is stored first."""
        try:
            return await running.wait_until_recorded(_HOLD_SECONDS)
        except asyncio.CancelledError:
            await self._store_answer(key, run, completed)
            raise

    async def _store_answer(self, key: str, run: str, completed: GenerateCompleted) -> bool:
        return await self._record(key, run, CallState.ANSWERED, answer_fields(completed), 2 * self._lease)

    async def _check_for_cancel(self, key: str, run: str, usage: Usage) -> None:
        """Raise CallFailed if another replica has cancelled a run before its answer came; it is not made again."""
        seen = await retry_while_unavailable(lambda: self._store.look(key), 2 * self._lease)
        if seen is not None and seen.run == run and seen.state is CallState.FAILED:
            failure, _ = seen.failure()
            await self._record_stop(key, run, failure_fields(failure, usage))
            raise CallFailed(failure, usage)

    async def _give_up(self, key: str, run: str, running: RunningCall) -> None:
        """Release a call to other replicas; one that was cancelled fails for those that wait for it."""
        if running.cancelled:
            failure = Failure(CALL_CANCELLED, "the call was cancelled")
            await self._record_stop(key, run, failure_fields(failure, running.meter.usage()))
        else:
            await self._record(key, run, CallState.RELEASED, {})

    async def _record_stop(self, key: str, run: str, outcome: Fields) -> None:
        """Write down that a run was stopped, and what it had used, which who stopped it elsewhere could not know."""
        await self._record(key, run, CallState.FAILED, outcome)
        try:
            await self._store.correct(key, run, outcome)
        except StorageError as error:
            _logger.warning("what a stopped call had used could not be written down", error=str(error))

    async def _record(
        self,
        key: str,
        run: str,
        state: CallState,
        outcome: Fields,
        seconds: float = 0.0,
    ) -> bool:
        """Write what came of a run; False if the call is not that run's any more.

        What cannot be written within these seconds is written when the store is back. An answer raises
        StoreUnavailableError then, since it may not be heard before it is kept.
        """
        try:
            written = await retry_while_unavailable(
                lambda: finish_write(self._end(key, run, state, outcome)), seconds
            )
            if written:
                return True
            seen = await retry_while_unavailable(lambda: self._store.look(key), seconds)
        except StoreUnavailableError:
            self._unrecorded[run] = key, state, outcome
            if state is CallState.ANSWERED:
                raise
            return True
        return seen is not None and seen.run == run and seen.state is state

    async def _end(self, key: str, run: str, state: CallState, outcome: Fields) -> bool:
        try:
            written = await self._store.end(key, run, state, outcome)
        except StoreUnavailableError:
            self._is_store_away = True
            raise
        self._is_store_away = False
        return written

    async def record_unrecorded(self) -> None:
        """Write down what could not be written when it came."""
        for run, (key, state, outcome) in list(self._unrecorded.items()):
            await self._end(key, run, state, outcome)
            self._unrecorded.pop(run, None)  # another call may have written it meanwhile

    async def stop_requested_runs(self) -> None:
        """Stop the calls that other replicas were asked to cancel."""
        for run in await self._store.list_stop_requests():
            running = self._owned.get(run)
            if running is not None:
                await running.stop(cancelled=True)
            await self._store.confirm_stop(run)


def _read_outcome(seen: StoredCall, digest: Digest, waited_for: str) -> GenerateCompleted | None:
    """Return what is stored for a caller who asks this; None if it still has to be made.

    Raise CallFailed and ParleyError.
    """
    if seen.state is CallState.FORGOTTEN:
        raise _forgotten_error()
    if seen.state in {CallState.RUNNING, CallState.ANSWERED} and seen.digest != digest():
        raise id_reuse_error()
    if seen.state is CallState.ANSWERED:
        return seen.answer()
    if seen.state is CallState.FAILED and seen.run == waited_for:
        raise CallFailed(*seen.failure())
    return None


async def complete_call(running: RunningCall, answerer: Answerer) -> GenerateCompleted:
    """Return the answer of a call with what it took."""
    answer = await answerer(running)
    answer.usage.CopyFrom(running.meter.usage())
    answer.latency.FromNanoseconds(round(running.seconds * 1e9))
    answer.queued.FromNanoseconds(round(running.meter.queued_seconds * 1e9))
    return answer


def _forgotten_error() -> ParleyError:
    message = "the answer of this call was recorded by its caller, and is not kept any more"
    return failed_precondition("ANSWER_FORGOTTEN", message)


def id_reuse_error() -> ParleyError:
    """Return the error for a call id that was already used for a different request."""
    return ParleyError(
        StatusCode.ALREADY_EXISTS, "CALL_ID_REUSED", "the call_id was already used for a different request"
    )
