"""The calls of this replica: those without a name belong to who asked, those with one are stored and shared.

A replica runs at most one task a name, and everyone here who asks under that name listens to it.
"""

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from grpc import StatusCode

from parley.gateway.calls.key import CallKey
from parley.gateway.calls.runs import Answerer, StoredRuns, answered, reused
from parley.gateway.calls.store import CallState, CallStore, failure_fields
from parley.gateway.calls.stream import Completed, Event, RunningCall
from parley.gateway.failures import CALL_CANCELLED, Failure
from parley.gateway.usage import Usage
from parley.runtime.errors import ParleyError
from parley.runtime.logs import get_logger
from parley.storage.ports import StorageError

__all__ = ["CallRegistry", "Cancelled"]

_STOP_PAUSE: Final = 0.05
_STOP_LOOKS: Final = 30
"""How often CancelCall looks whether another replica has stopped a call, and the seconds between."""
_LAST_WORD_SECONDS: Final = 0.25
"""How much longer than its time a call is listened to, so that it can say itself what happened."""
_KEEP_SECONDS: Final = 0.5
_SWEEP_SECONDS: Final = 600.0

_logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A call that was to be stopped: whether it ran, its last run where that has failed, and what this used, if that is known."""

    was_running: bool
    run: str = ""
    usage: Usage | None = None


class CallRegistry:
    """All calls at this replica. `lease_seconds` is how long a silent replica keeps its calls.

    `alone` says that no other replica uses the store, so that a call of another one belongs to a process that is gone.
    """

    def __init__(self, store: CallStore, lease_seconds: float, *, alone: bool = False) -> None:
        self._store = store
        self._lease = lease_seconds
        self._runs = StoredRuns(store, lease_seconds, alone=alone)
        self._named: dict[CallKey, RunningCall] = {}
        self._abandoned: dict[CallKey, asyncio.TimerHandle] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def find(self, key: CallKey) -> RunningCall | None:
        """Return the call of that name, if this replica has to do with it now."""
        return self._named.get(key)

    async def listen(
        self, key: CallKey | None, digest: str, answerer: Answerer, ends: float = math.inf
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of a call.

        Raises CallFailed, and ParleyError for other content under the name or a store that is away.

        Without a name the call is stopped when its listener goes away. With one it goes on for two leases, since a
        caller that was killed comes back for the answer. Who has joined waits until `ends`, in the loop's time, at most.
        """
        running = await self._to_join(key) if key is not None else None
        if running is None:
            running = RunningCall(digest=digest)
            if key is None:
                running.start(lambda call: answered(call, answerer))
            else:
                self._begin(key, running, answerer)
        elif running.digest != digest:
            raise reused()
        if key is not None and (timer := self._abandoned.pop(key, None)) is not None:
            timer.cancel()
        running.listeners += 1
        try:
            async with aclosing(running.events(ends + _LAST_WORD_SECONDS)) as events:
                async for event in events:
                    yield event
        finally:
            running.listeners -= 1
            if running.listeners == 0 and not running.over:
                if key is None or not self._runs.owns(running):
                    await running.stop()
                else:
                    self._abandon(key, running)

    async def cancel(self, key: CallKey) -> Cancelled:
        """Stop the call of that name wherever it runs. Raises ParleyError if the store is away."""
        running = self._named.get(key)
        owned = False
        if running is not None and not running.over:
            owned = self._runs.owns(running)
            await running.stop(cancelled=True)
        try:
            if owned:
                return await self._stopped(key, was_running=True)
            was_running = await self._cancel_stored(key)
            return await self._stopped(key, was_running=was_running)
        except StorageError as error:
            if owned:
                return Cancelled(was_running=True)
            raise _away(error) from error

    async def keep(self) -> None:
        """Say that this replica lives while it runs stored calls, stops what is to be stopped, sweeps; for ever."""
        loop = asyncio.get_running_loop()
        heartbeat_at = sweep_at = loop.time()
        while True:
            try:
                if loop.time() >= sweep_at:
                    sweep_at = loop.time() + _SWEEP_SECONDS
                    await self._store.sweep()
                if self._runs.any_open:
                    if loop.time() >= heartbeat_at:
                        heartbeat_at = loop.time() + self._lease / 3
                        await self._store.send_heartbeat()
                    await self._runs.stop_as_asked()
                    await self._runs.record_what_was_left()
            except StorageError as error:
                _logger.warning("the store of calls does not answer", error=str(error))
            await asyncio.sleep(min(_KEEP_SECONDS, self._lease / 5))

    async def close(self, seconds: float) -> None:
        """Let the calls that still run come to an end for so many seconds, then gives them up."""
        for timer in self._abandoned.values():
            timer.cancel()
        running = [asyncio.create_task(call.ended()) for call in self._named.values()]
        if running:
            await asyncio.wait(running, timeout=seconds)
        await asyncio.gather(*(call.stop() for call in list(self._named.values())), *running)

    async def _to_join(self, key: CallKey) -> RunningCall | None:
        """Return the call of that name that goes on here; one that is just being stopped is waited out."""
        while (running := self._named.get(key)) is not None and running.stopping:
            await running.ended()
        return None if running is None or running.over else running

    def _begin(self, key: CallKey, running: RunningCall, answerer: Answerer) -> None:
        async def work(call: RunningCall) -> Completed:
            try:
                return await self._runs.complete(key, call, answerer)
            except StorageError as error:
                raise _away(error) from error

        self._named[key] = running
        running.start(work, lambda: self._forget(key, running))

    def _forget(self, key: CallKey, running: RunningCall) -> None:
        if self._named.get(key) is running:
            del self._named[key]
            timer = self._abandoned.pop(key, None)
            if timer is not None:
                timer.cancel()

    def _abandon(self, key: CallKey, running: RunningCall, wanted: str = "") -> None:
        # Unless somebody comes back for it, here or elsewhere.
        def stop() -> None:
            del self._abandoned[key]
            task = asyncio.create_task(self._stop_unless_wanted(key, running, wanted))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

        if self._named.get(key) is running:
            self._abandoned[key] = asyncio.get_running_loop().call_later(2 * self._lease, stop)

    async def _stop_unless_wanted(self, key: CallKey, running: RunningCall, wanted: str) -> None:
        try:
            seen = await self._store.look(key)
        except StorageError:  # nobody can wait for it elsewhere
            seen = None
        if running.over or running.listeners:
            return
        if seen is not None and seen.wanted != wanted:
            self._abandon(key, running, seen.wanted)
        else:
            await running.stop()

    async def _stopped(self, key: CallKey, *, was_running: bool) -> Cancelled:
        """Return what the last run of a call has used, where it was stopped or has failed and that is known."""
        seen = await self._store.look(key)
        if seen is None or seen.state is not CallState.FAILED:
            return Cancelled(was_running)
        _, usage = seen.failure()
        is_known = usage.requests or usage.cost_micros is not None
        return Cancelled(was_running, seen.run, usage if is_known else None)

    async def _cancel_stored(self, key: CallKey) -> bool:
        seen = await self._store.look(key)
        if seen is None or seen.state is not CallState.RUNNING:
            return False
        failure = Failure(CALL_CANCELLED, "the call was cancelled")
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
            await asyncio.sleep(_STOP_PAUSE)
        return True


def _away(error: StorageError) -> ParleyError:
    return ParleyError(StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE", f"the store of calls: {error}")
