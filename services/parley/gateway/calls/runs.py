"""The runs of stored calls at this replica: claimed or waited for, answered, and written down.

A run finds out from the call's document what is to be done: hand over the stored answer, wait for the replica that runs
the call, or run it.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from typing import Any, Final

from grpc import StatusCode

from parley.gateway.answer import Answer
from parley.gateway.calls.key import CallKey
from parley.gateway.calls.lease import LeaseWait
from parley.gateway.calls.store import CallState, CallStore, StoredCall, answer_fields, failure_fields
from parley.gateway.calls.stream import CallFailed, Completed, RunningCall
from parley.gateway.calls.writes import BACKOFF, patiently, to_its_end
from parley.gateway.failures import CALL_CANCELLED, Failure
from parley.gateway.usage import Usage
from parley.runtime.errors import ParleyError
from parley.runtime.logs import get_logger
from parley.storage.ports import Fields, StorageError, StoreUnavailableError

__all__ = ["Answerer", "StoredRuns", "answered", "reused"]

_logger = get_logger(__name__)

_CLAIM_SECONDS: Final = 3.0
"""How long a store that does not answer is asked again before a call begins."""

Answerer = Callable[[RunningCall], Coroutine[Any, Any, Answer]]
"""What asks the routes, told to whom to report."""


class StoredRuns:
    """The stored calls that this replica makes, or waits for.

    `alone` says that no other replica uses the store, so that a call of another one belongs to a process that is gone.
    """

    def __init__(self, store: CallStore, lease_seconds: float, *, alone: bool) -> None:
        self._store = store
        self._lease = lease_seconds
        self._alone = alone
        self._owned: dict[str, RunningCall] = {}
        self._unrecorded: dict[str, tuple[CallKey, CallState, Fields]] = {}

    @property
    def any_open(self) -> bool:
        """Whether this replica makes a call now, or has one to write down."""
        return bool(self._owned or self._unrecorded)

    def owns(self, running: RunningCall) -> bool:
        """Tell whether it is this replica that asks the routes."""
        return any(each is running for each in self._owned.values())

    async def complete(self, key: CallKey, running: RunningCall, answerer: Answerer) -> Completed:
        """Return the answer of a call: the stored one, that of another replica, or one that is asked for here."""
        waiting = LeaseWait(self._store, self._lease)
        while True:
            run = secrets.token_hex(8)
            try:
                found = await self._found_or_claimed(key, run, running, waiting)
                if found is not None:
                    return found
                completed = await self._run(key, run, running, answerer)
            except asyncio.CancelledError:
                await self._give_up(key, run, running)
                raise
            if completed is not None:
                return completed

    async def _found_or_claimed(
        self, key: CallKey, run: str, running: RunningCall, waiting: LeaseWait
    ) -> Completed | None:
        """Return the answer that is stored, at once or in the end; None if the call is this run's to make."""
        seen: StoredCall | None = None  # as nearly every call is a new one
        while True:
            try:
                if await to_its_end(self._store.claim(key, run, running.digest, seen)):
                    return None
            except StoreUnavailableError:
                await asyncio.sleep(BACKOFF.first)
            while (seen := await patiently(lambda: self._store.look(key), _CLAIM_SECONDS)) is not None:
                if seen.run == run:  # a claim of unknown outcome went through
                    return None
                answered = _outcome(seen, running.digest, waiting.run)
                if answered is not None:
                    return answered
                if seen.run in self._unrecorded:
                    await patiently(self.record_what_was_left, _CLAIM_SECONDS)
                elif seen.state is not CallState.RUNNING or await self._may_take_over(key, seen, waiting):
                    break

    async def _may_take_over(self, key: CallKey, seen: StoredCall, waiting: LeaseWait) -> bool:
        """Tell whether a running call has lost its replica. This one's own earlier runs are over: it runs one at a time."""
        return self._alone or seen.replica == self._store.replica or await waiting.lease_ended(key, seen)

    async def _run(
        self, key: CallKey, run: str, running: RunningCall, answerer: Answerer
    ) -> Completed | None:
        """Answer the call; None if another replica has taken it over meanwhile. Raises CallFailed."""
        self._owned[run] = running
        try:
            completed = await answered(running, answerer)
        except Failure as failure:
            usage = running.meter.usage()
            await self._record(key, run, CallState.FAILED, failure_fields(failure, usage))
            raise CallFailed(failure, usage) from None
        except Exception:
            await self._record(key, run, CallState.RELEASED, {})
            raise
        else:
            fields = answer_fields(completed.answer, completed.usage, completed.seconds)
            if await self._record(key, run, CallState.ANSWERED, fields, 2 * self._lease):
                return completed
            await self._hear_of_cancel(key, run, completed.usage)
            return None
        finally:
            del self._owned[run]

    async def _hear_of_cancel(self, key: CallKey, run: str, usage: Usage) -> None:
        """Raise CallFailed where another replica has cancelled a run before its answer came; it is not made again."""
        seen = await patiently(lambda: self._store.look(key), 2 * self._lease)
        if seen is not None and seen.run == run and seen.state is CallState.FAILED:
            failure, _ = seen.failure()
            await self._record_stop(key, run, failure_fields(failure, usage))
            raise CallFailed(failure, usage)

    async def _give_up(self, key: CallKey, run: str, running: RunningCall) -> None:
        """Leave a call to whoever wants it; one that was cancelled fails for those that wait for it elsewhere."""
        if running.cancelled:
            failure = Failure(CALL_CANCELLED, "the call was cancelled")
            await self._record_stop(key, run, failure_fields(failure, running.meter.usage()))
        else:
            await self._record(key, run, CallState.RELEASED, {})

    async def _record_stop(self, key: CallKey, run: str, outcome: Fields) -> None:
        """Write down that a run was stopped, and what it had used, which who stopped it elsewhere could not know."""
        await self._record(key, run, CallState.FAILED, outcome)
        try:
            await self._store.correct(key, run, outcome)
        except StorageError as error:
            _logger.warning("what a stopped call had used could not be written down", error=str(error))

    async def _record(
        self, key: CallKey, run: str, state: CallState, outcome: Fields, seconds: float = 0.0
    ) -> bool:
        """Write what came of a run; False if the call is not that run's any more.

        What cannot be written within these seconds is written when the store is back. An answer raises
        StoreUnavailableError then, since it may not be heard before it is kept.
        """
        try:
            written = await patiently(lambda: to_its_end(self._store.end(key, run, state, outcome)), seconds)
            if written:
                return True
            seen = await patiently(lambda: self._store.look(key), seconds)
        except StoreUnavailableError:
            self._unrecorded[run] = key, state, outcome
            if state is CallState.ANSWERED:
                raise
            return True
        return seen is not None and seen.run == run and seen.state is state

    async def record_what_was_left(self) -> None:
        """Write down what could not be written when it came."""
        for run, (key, state, outcome) in list(self._unrecorded.items()):
            await self._store.end(key, run, state, outcome)
            self._unrecorded.pop(run, None)  # another call may have written it meanwhile

    async def stop_as_asked(self) -> None:
        """Stop the calls that other replicas were asked to cancel."""
        for run in await self._store.stops():
            running = self._owned.get(run)
            if running is not None:
                await running.stop(cancelled=True)
            await self._store.stopped(run)


def _outcome(seen: StoredCall, digest: str, waited_for: str) -> Completed | None:
    """Return what is stored for a caller who asks this; None if it still has to be made.

    Raises CallFailed and ParleyError.
    """
    if seen.state in {CallState.RUNNING, CallState.ANSWERED} and seen.digest != digest:
        raise reused()
    if seen.state is CallState.ANSWERED:
        answer, usage, seconds = seen.answer()
        return Completed(answer, usage, seconds, stored=True)
    if seen.state is CallState.FAILED and seen.run == waited_for:
        raise CallFailed(*seen.failure())
    return None


async def answered(running: RunningCall, answerer: Answerer) -> Completed:
    """Return the answer of a call with what it took."""
    answer = await answerer(running)
    return Completed(answer, running.meter.usage(), running.seconds)


def reused() -> ParleyError:
    """Return what a caller hears whose name stands for another call."""
    return ParleyError(
        StatusCode.ALREADY_EXISTS, "CALL_ID_REUSED", "a call with this call_id asks something else"
    )
