"""The calls of this replica: those without a name belong to who asked, those with one are stored and shared.

A replica runs at most one task a name, and everyone here who asks under that name listens to it.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

from parley.gateway.calls.runs import Answerer, StoredRuns, complete_call, id_reuse_error
from parley.gateway.calls.store import CallState, CallStore, failure_fields
from parley.gateway.calls.stream import Digest, RunningCall
from parley.gateway.failures import CALL_CANCELLED, Failure
from parley.runtime.logs import get_logger
from parley.storage.ports import StorageError
from parley.storage.service_errors import map_store_errors
from parley.v1.agent_pb2 import Usage
from parley.v1.gateway_pb2 import CancelCallResponse, GenerateCompleted, GenerateResponse

_STOP_PAUSE: Final = 0.05
_STOP_LOOKS: Final = 30
"""How often CancelCall looks whether another replica has stopped a call, and the seconds between."""
_LAST_WORD_SECONDS: Final = 0.25
"""How much longer than its time a call is listened to, so that it can say itself what happened."""
_RELEASE_SECONDS: Final = 1.0
"""How long a stopping replica tries to give its calls up: if the store is away, their leases end by themselves."""
_KEEP_SECONDS: Final = 0.5
_SWEEP_SECONDS: Final = 600.0
_STORE: Final = "the store of calls"

_logger = get_logger(__name__)


class CallRegistry:
    """All calls at this replica. `lease_seconds` is how long a silent replica keeps its calls.

    `alone` says that no other replica uses the store, so that a call of another one belongs to a process that is gone.
    """

    def __init__(self, store: CallStore, lease_seconds: float, *, alone: bool = False) -> None:
        self._store = store
        self._lease = lease_seconds
        self._alone = alone
        self._runs = StoredRuns(store, lease_seconds, alone=alone)
        self._named: dict[str, RunningCall] = {}
        self._abandoned: dict[str, asyncio.TimerHandle] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def find(self, key: str) -> RunningCall | None:
        """Return the call of that name, if this replica has to do with it now."""
        return self._named.get(key)

    async def listen(
        self,
        key: str | None,
        digest: Digest,
        answerer: Answerer,
        ends: float = math.inf,
        *,
        records: bool = False,
    ) -> AsyncGenerator[GenerateResponse, None]:
        """Yield the events of a call.

        Raise CallFailed, and ParleyError for other content under the name or a store that is away or cannot be read.

        Without a name the call is stopped when its listener goes away. With one it goes on for two leases, since a
        caller that was killed comes back for the answer. Who has joined waits until `ends`, in the loop's time, at most.

        `records`: whether the listener is in this process and writes the answer down itself, in the same store. If no other replica
        uses that, it gets the answer as soon as it is there, and the answer is stored only if the listener does not say soon, by `forget`, that
        it has written it down.
        """
        running = await self._find_running(key) if key is not None else None
        if running is None:
            running = RunningCall(digest=digest)
            if key is None:
                running.start(lambda call: complete_call(call, answerer))
            else:
                self._start(key, running, answerer)
        elif running.digest() != digest():
            raise id_reuse_error()
        if key is not None and (timer := self._abandoned.pop(key, None)) is not None:
            timer.cancel()
        running.listeners += 1
        running.others += not records
        if not records:
            running.end_hold()  # this one gets the answer only once it is stored
        try:
            async with aclosing(running.events(ends + _LAST_WORD_SECONDS, unstored=records)) as events:
                async for event in events:
                    yield event
        finally:
            running.listeners -= 1
            running.others -= not records
            if running.listeners == 0 and not (running.over or running.is_answered):
                if key is None or not self._runs.owns(running):
                    await running.stop()
                else:
                    self._abandon(key, running)

    async def cancel(self, key: str) -> CancelCallResponse:
        """Stop the call of that name wherever it runs. Raise ParleyError if the store is away or cannot be read."""
        running = self._named.get(key)
        owned = False
        if running is not None and not running.over:
            owned = self._runs.owns(running) and not running.is_answered
            await running.stop(cancelled=True)
        try:
            if owned:
                return await self._describe_stopped(key, was_running=True)
            was_running = await self._cancel_stored(key)
            return await self._describe_stopped(key, was_running=was_running)
        except StorageError:
            if owned:
                return CancelCallResponse(was_running=True)
            with map_store_errors(_STORE):
                raise

    async def forget(self, keys: Sequence[str]) -> None:
        """Forget the answers of calls: their callers have recorded them. Raise ParleyError if the store is away or cannot be read."""
        running = {key: self._named.get(key) for key in keys}
        stored = {key: call for key, call in running.items() if call is None or not call.mark_recorded()}
        for call in stored.values():
            if call is not None and call.is_answered:  # it is being stored
                await call.wait_until_over()
        if stored:
            with map_store_errors(_STORE):
                await self._runs.record_unrecorded()  # what is written later would not be forgotten
                await self._store.forget(list(stored))

    async def keep(self) -> None:
        """Send heartbeats while stored calls run here, stop the calls that other replicas cancelled, and sweep; for ever."""
        loop = asyncio.get_running_loop()
        heartbeat_at = sweep_at = loop.time()
        while True:
            try:
                if loop.time() >= sweep_at:
                    sweep_at = loop.time() + _SWEEP_SECONDS
                    await self._store.sweep()
                if self._runs.any_open and not self._alone:
                    if loop.time() >= heartbeat_at:
                        heartbeat_at = loop.time() + self._lease / 3
                        await self._store.send_heartbeat()
                    await self._runs.stop_requested_runs()
                await self._runs.record_unrecorded()
            except StorageError as error:
                _logger.warning("the store of calls does not answer", error=str(error))
            await asyncio.sleep(min(_KEEP_SECONDS, self._lease / 5))

    async def close(self, seconds: float) -> None:
        """Let the calls that still run come to an end for so many seconds, then gives them up."""
        for timer in self._abandoned.values():
            timer.cancel()
        for call in self._named.values():
            call.end_hold()  # who records the answer has ended, too
        running = [asyncio.create_task(call.wait_until_over()) for call in self._named.values()]
        if running:
            await asyncio.wait(running, timeout=seconds)
        stops = {asyncio.create_task(call.stop()) for call in self._named.values()}
        self._stopping |= stops
        if stops:
            await asyncio.wait({*stops, *running}, timeout=_RELEASE_SECONDS)

    async def _find_running(self, key: str) -> RunningCall | None:
        """Return the call of that name that goes on here; one that is just being stopped is waited out."""
        while (running := self._named.get(key)) is not None and running.stopping:
            await running.wait_until_over()
        return None if running is None or running.over else running

    def _start(self, key: str, running: RunningCall, answerer: Answerer) -> None:
        async def work(call: RunningCall) -> GenerateCompleted:
            with map_store_errors(_STORE):
                return await self._runs.complete(key, call, answerer)

        self._named[key] = running
        running.start(work, lambda: self._forget(key, running))

    def _forget(self, key: str, running: RunningCall) -> None:
        if self._named.get(key) is running:
            del self._named[key]
            timer = self._abandoned.pop(key, None)
            if timer is not None:
                timer.cancel()

    def _abandon(self, key: str, running: RunningCall, wanted: str = "") -> None:
        # Unless a caller comes back for it, here or at another replica.
        def stop() -> None:
            del self._abandoned[key]
            task = asyncio.create_task(self._stop_unless_wanted(key, running, wanted))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

        if self._named.get(key) is running:
            self._abandoned[key] = asyncio.get_running_loop().call_later(2 * self._lease, stop)

    async def _stop_unless_wanted(self, key: str, running: RunningCall, wanted: str) -> None:
        try:
            seen = await self._store.look(key)
        except StorageError:  # no other replica can wait for it
            seen = None
        if running.over or running.listeners:
            return
        if seen is not None and seen.wanted != wanted:
            self._abandon(key, running, seen.wanted)
        else:
            await running.stop()

    async def _describe_stopped(self, key: str, *, was_running: bool) -> CancelCallResponse:
        """Return what the last run of a call has used, if it is over and that is known."""
        seen = await self._store.look(key)
        if seen is not None and seen.state in {CallState.ANSWERED, CallState.RELEASED}:
            usage = seen.answer().usage if seen.state is CallState.ANSWERED else seen.owed
            if usage is not None:
                return CancelCallResponse(was_running=was_running, run=seen.run, usage=usage, answered=True)
        if seen is None or seen.state is not CallState.FAILED:
            return CancelCallResponse(was_running=was_running)
        _, usage = seen.failure()
        is_known = usage.requests or usage.HasField("cost_micros")
        return CancelCallResponse(was_running=was_running, run=seen.run, usage=usage if is_known else None)

    async def _cancel_stored(self, key: str) -> bool:
        seen = await self._store.look(key)
        if seen is None or seen.state is not CallState.RUNNING:
            return False
        failure = Failure(CALL_CANCELLED, "the call was cancelled")
        used = seen.owed or Usage()  # what it used itself only who runs it knows
        elsewhere = seen.replica != self._store.replica
        if elsewhere:  # first: who is killed here must not leave a call that runs on and may not be answered
            await self._store.request_stop(seen)
        if not await self._store.end(key, seen.run, CallState.FAILED, failure_fields(failure, used)):
            now = await self._store.look(key)  # its replica may have been quicker
            return now is not None and now.run == seen.run and now.state is CallState.FAILED
        for _ in range(_STOP_LOOKS if elsewhere else 0):
            if not await self._store.is_stop_requested(seen):
                break
            await asyncio.sleep(_STOP_PAUSE)
        return True
