"""The calls of this replica: those without a name belong to who asked, those with one are stored and shared.

A replica runs at most one task a name, and everyone here who asks under that name listens to it. The task finds out
from the call's document what is to be done: hand over the stored answer, wait for the replica that runs the call,
or run it.
"""

import asyncio
import math
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Final, TypeVar

from grpc import StatusCode

from parley.gateway.call import Answer, Usage
from parley.gateway.call_store import (
    CallKey,
    CallState,
    CallStore,
    StoredCall,
    answer_fields,
    failure_fields,
)
from parley.gateway.errors_table import CALL_CANCELLED, AttemptFailed
from parley.gateway.running import CallFailed, Completed, Event, RunningCall
from parley.runtime.errors import ParleyError
from parley.runtime.logs import get_logger
from parley.storage.ports import Fields, StorageError, StoreUnavailableError

__all__ = ["Answering", "Calls"]

_FIRST_LOOK: Final = 0.05
_LONGEST_LOOK: Final = 0.5
"""Seconds between two looks at a call that runs elsewhere."""
_FIRST_RETRY: Final = 0.05
_LONGEST_RETRY: Final = 1.0
_CLAIM_SECONDS: Final = 3.0
"""How long a store that does not answer is asked again before a call begins."""
_LAST_WORD_SECONDS: Final = 0.25
"""How much longer than its time a call is listened to, so that it can say itself what happened."""
_KEEP_SECONDS: Final = 0.5
_STOP_LOOKS: Final = 30
"""How often CancelCall looks whether another one has stopped."""
_SWEEP_SECONDS: Final = 600.0

_logger = get_logger(__name__)

T = TypeVar("T")

Answering = Callable[[RunningCall], Coroutine[Any, Any, Answer]]
"""What asks the routes, told to whom to report."""


class Calls:
    """All calls at this replica. `lease_seconds` is how long a silent replica keeps its calls.

    `alone` says that no other replica uses the store, so that a call of another one belongs to a process that is gone.
    """

    def __init__(self, store: CallStore, lease_seconds: float, *, alone: bool = False) -> None:
        self._store = store
        self._alone = alone
        self._lease = lease_seconds
        self._named: dict[CallKey, RunningCall] = {}
        self._owned: dict[str, RunningCall] = {}
        self._unrecorded: dict[str, tuple[CallKey, CallState, Fields]] = {}
        self._forsaken: dict[CallKey, asyncio.TimerHandle] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def find(self, key: CallKey) -> RunningCall | None:
        """The call of that name, if this replica has to do with it now."""
        return self._named.get(key)

    async def listen(
        self, key: CallKey | None, digest: str, answering: Answering, ends: float = math.inf
    ) -> AsyncGenerator[Event, None]:
        """Events of a call. Raises CallFailed, or ParleyError for other content under the name or a store that is away.

        Without a name the call is stopped when its listener goes away. With one it goes on for two leases, since a
        caller that was killed comes back for the answer. Who has joined waits until `ends`, in the loop's time, at most.
        """
        running = await self._to_join(key) if key is not None else None
        if running is None:
            running = RunningCall(digest=digest)
            if key is None:
                running.start(lambda call: _answered(call, answering))
            else:
                self._begin(key, running, answering)
        elif running.digest != digest:
            raise _reused()
        if key is not None and (timer := self._forsaken.pop(key, None)) is not None:
            timer.cancel()
        running.listeners += 1
        try:
            async with aclosing(running.events(ends + _LAST_WORD_SECONDS)) as events:
                async for event in events:
                    yield event
        finally:
            running.listeners -= 1
            if running.listeners == 0 and not running.over:
                if key is None or not self._is_owned(running):
                    await running.stop()
                else:
                    self._forsake(key, running)

    async def cancel(self, key: CallKey) -> bool:
        """Stops the call of that name wherever it runs; whether it ran. Raises ParleyError if the store is away."""
        running = self._named.get(key)
        if running is not None and not running.over:
            owned = self._is_owned(running)
            await running.stop(cancelled=True)
            if owned:
                return True
        try:
            return await self._cancel_stored(key)
        except StorageError as error:
            raise _away(error) from error

    async def keep(self) -> None:
        """Says that this replica lives while it runs stored calls, stops what is to be stopped, sweeps; for ever."""
        loop = asyncio.get_running_loop()
        beat_at = sweep_at = loop.time()
        while True:
            try:
                if loop.time() >= sweep_at:
                    sweep_at = loop.time() + _SWEEP_SECONDS
                    await self._store.sweep()
                if self._owned or self._unrecorded:
                    if loop.time() >= beat_at:
                        beat_at = loop.time() + self._lease / 3
                        await self._store.beat()
                    await self._stop_as_asked()
                    await self._record_what_was_left()
            except StorageError as error:
                _logger.warning("the store of calls does not answer", error=str(error))
            await asyncio.sleep(min(_KEEP_SECONDS, self._lease / 5))

    async def close(self, seconds: float) -> None:
        """Lets the calls that still run come to an end for so many seconds, then gives them up."""
        for timer in self._forsaken.values():
            timer.cancel()
        running = [asyncio.create_task(call.ended()) for call in self._named.values()]
        if running:
            await asyncio.wait(running, timeout=seconds)
        await asyncio.gather(*(call.stop() for call in list(self._named.values())), *running)

    async def _to_join(self, key: CallKey) -> RunningCall | None:
        """The call of that name that goes on here; one that is just being stopped is waited out."""
        while (running := self._named.get(key)) is not None and running.stopping:
            await running.ended()
        return None if running is None or running.over else running

    def _begin(self, key: CallKey, running: RunningCall, answering: Answering) -> None:
        async def work(call: RunningCall) -> Completed:
            try:
                return await self._stored(key, call, answering)
            except StorageError as error:
                raise _away(error) from error

        self._named[key] = running
        running.start(work, lambda: self._forget(key, running))

    def _is_owned(self, running: RunningCall) -> bool:
        """Whether it is this replica that asks the routes."""
        return any(each is running for each in self._owned.values())

    def _forget(self, key: CallKey, running: RunningCall) -> None:
        if self._named.get(key) is running:
            del self._named[key]
            timer = self._forsaken.pop(key, None)
            if timer is not None:
                timer.cancel()

    def _forsake(self, key: CallKey, running: RunningCall, wanted: str = "") -> None:
        # Unless somebody comes back for it, here or elsewhere.
        def stop() -> None:
            del self._forsaken[key]
            task = asyncio.create_task(self._stop_unless_wanted(key, running, wanted))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

        if self._named.get(key) is running:
            self._forsaken[key] = asyncio.get_running_loop().call_later(2 * self._lease, stop)

    async def _stop_unless_wanted(self, key: CallKey, running: RunningCall, wanted: str) -> None:
        try:
            seen = await self._store.look(key)
        except StorageError:  # nobody can wait for it elsewhere
            seen = None
        if running.over or running.listeners:
            return
        if seen is not None and seen.wanted != wanted:
            self._forsake(key, running, seen.wanted)
        else:
            await running.stop()

    async def _stored(self, key: CallKey, running: RunningCall, answering: Answering) -> Completed:
        waiting = _Waiting(self._store, self._lease)
        while True:
            run = secrets.token_hex(8)
            try:
                found = await self._found_or_claimed(key, run, running, waiting)
                if found is not None:
                    return found
                completed = await self._run(key, run, running, answering)
            except asyncio.CancelledError:
                await self._give_up(key, run, running)
                raise
            if completed is not None:
                return completed

    async def _found_or_claimed(
        self, key: CallKey, run: str, running: RunningCall, waiting: "_Waiting"
    ) -> Completed | None:
        """The answer that is stored, at once or in the end; None if the call is this run's to make."""
        seen: StoredCall | None = None  # as nearly every call is a new one
        while True:
            try:
                if await _to_its_end(self._store.claim(key, run, running.digest, seen)):
                    return None
            except StoreUnavailableError:
                await asyncio.sleep(_FIRST_RETRY)
            while (seen := await _patiently(lambda: self._store.look(key), _CLAIM_SECONDS)) is not None:
                if seen.run == run:  # a claim of unknown outcome went through
                    return None
                answered = _outcome(seen, running.digest, waiting.run)
                if answered is not None:
                    return answered
                if seen.run in self._unrecorded:
                    await _patiently(self._record_what_was_left, _CLAIM_SECONDS)
                elif seen.state is not CallState.RUNNING or await self._may_take_over(key, seen, waiting):
                    break

    async def _may_take_over(self, key: CallKey, seen: StoredCall, waiting: "_Waiting") -> bool:
        """Whether a running call has lost its replica. This one's own earlier runs are over: it runs one at a time."""
        return self._alone or seen.replica == self._store.replica or await waiting.lease_ended(key, seen)

    async def _run(
        self, key: CallKey, run: str, running: RunningCall, answering: Answering
    ) -> Completed | None:
        """Answers the call; None if another replica has taken it over meanwhile."""
        self._owned[run] = running
        try:
            completed = await _answered(running, answering)
        except AttemptFailed as failure:
            usage = running.tally.usage()
            await self._record(key, run, CallState.FAILED, failure_fields(failure, usage))
            raise CallFailed(failure, usage) from None
        except Exception:
            await self._record(key, run, CallState.RELEASED, {})
            raise
        else:
            fields = answer_fields(completed.answer, completed.usage, completed.seconds)
            kept = await self._record(key, run, CallState.ANSWERED, fields, 2 * self._lease)
            return completed if kept else None
        finally:
            del self._owned[run]

    async def _give_up(self, key: CallKey, run: str, running: RunningCall) -> None:
        """Leaves a call to whoever wants it; one that was cancelled fails for those that wait for it elsewhere."""
        if running.cancelled:
            failure = AttemptFailed(CALL_CANCELLED, "the call was cancelled")
            await self._record(key, run, CallState.FAILED, failure_fields(failure, running.tally.usage()))
        else:
            await self._record(key, run, CallState.RELEASED, {})

    async def _record(
        self, key: CallKey, run: str, state: CallState, outcome: Fields, seconds: float = 0.0
    ) -> bool:
        """Writes what came of a run; False if the call is not that run's any more.

        What cannot be written within these seconds is written when the store is back. An answer raises
        StoreUnavailableError then, since it may not be heard before it is kept.
        """
        try:
            written = await _patiently(
                lambda: _to_its_end(self._store.end(key, run, state, outcome)), seconds
            )
            if written:
                return True
            seen = await _patiently(lambda: self._store.look(key), seconds)
        except StoreUnavailableError:
            self._unrecorded[run] = key, state, outcome
            if state is CallState.ANSWERED:
                raise
            return True
        return seen is not None and seen.run == run and seen.state is state

    async def _record_what_was_left(self) -> None:
        for run, (key, state, outcome) in list(self._unrecorded.items()):
            await self._store.end(key, run, state, outcome)
            self._unrecorded.pop(run, None)  # another call may have written it meanwhile

    async def _cancel_stored(self, key: CallKey) -> bool:
        seen = await self._store.look(key)
        if seen is None or seen.state is not CallState.RUNNING:
            return False
        failure = AttemptFailed(CALL_CANCELLED, "the call was cancelled")
        used = Usage(cost_micros=None)  # only who runs it knows
        elsewhere = seen.replica != self._store.replica
        if elsewhere:  # first: who is killed here must not leave a call that runs on and may not be answered
            await self._store.ask_to_stop(seen)
        if not await self._store.end(key, seen.run, CallState.FAILED, failure_fields(failure, used)):
            now = await self._store.look(key)  # its replica may have been quicker
            return now is not None and now.run == seen.run and now.state is CallState.FAILED
        for _ in range(_STOP_LOOKS if elsewhere else 0):
            if not await self._store.asked_to_stop(seen):
                break
            await asyncio.sleep(_FIRST_LOOK)
        return True

    async def _stop_as_asked(self) -> None:
        for run in await self._store.stops():
            running = self._owned.get(run)
            if running is not None:
                await running.stop(cancelled=True)
            await self._store.stopped(run)


class _Waiting:
    """A wait for another replica's answer, and for the end of its lease by this one's own clock."""

    def __init__(self, store: CallStore, lease_seconds: float) -> None:
        self._store = store
        self._lease = lease_seconds
        self._pause = _FIRST_LOOK
        self._beat = -1
        self._since = self._look_at = 0.0
        self.run = ""
        """The run that is waited for."""

    async def lease_ended(self, key: CallKey, seen: StoredCall) -> bool:
        """Waits a moment; whether the replica that runs the call has been silent for a whole lease."""
        now = asyncio.get_running_loop().time()
        if seen.run != self.run:
            self.run, self._beat, self._look_at = seen.run, -1, now
        if now >= self._look_at:
            await self._store.want(key, seen.run)
            beat = await self._store.beat_of(seen.replica)
            if beat != self._beat:
                self._beat, self._since = beat, now
            elif now - self._since >= self._lease:
                return True
            self._look_at = now + self._lease / 5
        await asyncio.sleep(min(self._pause, self._lease / 5))
        self._pause = min(self._pause * 1.25, _LONGEST_LOOK)
        return False


def _outcome(seen: StoredCall, digest: str, waited_for: str) -> Completed | None:
    """What is stored for a caller who asks this; None if it still has to be made. Raises CallFailed and ParleyError."""
    if seen.state in {CallState.RUNNING, CallState.ANSWERED} and seen.digest != digest:
        raise _reused()
    if seen.state is CallState.ANSWERED:
        answer, usage, seconds = seen.answer()
        return Completed(answer, usage, seconds, stored=True)
    if seen.state is CallState.FAILED and seen.run == waited_for:
        raise CallFailed(*seen.failure())
    return None


async def _answered(running: RunningCall, answering: Answering) -> Completed:
    answer = await answering(running)
    return Completed(answer, running.tally.usage(), running.seconds)


async def _patiently(action: Callable[[], Awaitable[T]], seconds: float) -> T:
    """The action's result; a store that does not answer is asked again for so many seconds."""
    loop = asyncio.get_running_loop()
    ends, pause = loop.time() + seconds, _FIRST_RETRY
    while True:
        try:
            return await action()
        except StoreUnavailableError:
            if loop.time() >= ends:
                raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_RETRY)


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """The result of a write that is not left half way: who is cancelled meanwhile hears of it afterwards."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _reused() -> ParleyError:
    return ParleyError(
        StatusCode.ALREADY_EXISTS, "CALL_ID_REUSED", "a call with this call_id asks something else"
    )


def _away(error: StorageError) -> ParleyError:
    return ParleyError(StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE", f"the store of calls: {error}")
