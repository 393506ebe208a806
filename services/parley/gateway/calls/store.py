"""Calls as documents: what was asked, whose it is, and what came of it.

A call's document is written before its first request goes out, so that no two replicas pay for one call, and holds
the answer before any caller gets `completed`. A replica that is alone with its store writes it only once there is an outcome, and none
that a caller in this process records. Every change is conditional on what was seen. A replica that runs calls
says that it lives with a counter of its own, so that a lease costs one write for all of its calls; who waits for a
lease counts by its own clock.
"""

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from itertools import count
from typing import Any, Final

from google.protobuf.json_format import MessageToDict, ParseDict
from msgspec import Struct

from parley.gateway.calls.stream import Digest
from parley.gateway.failures import FAILURE_KINDS, SERVER_ERROR, Failure
from parley.runtime.clock import Clock
from parley.runtime.clock_watch import ClockWatch
from parley.storage.ports import Below, Collection, Documents, DuplicateError, Fields, Index, Order
from parley.v1.agent_pb2 import Usage
from parley.v1.gateway_pb2 import CallId, GenerateCompleted


def call_key(call_id: CallId) -> str:
    """Return the name of a call as the key of its document: the same for every caller that means the same call."""
    return json.dumps([call_id.tenant, call_id.debate_id, call_id.step, call_id.step_attempt])


KEPT: Final = timedelta(days=1)
"""How long an answer can be had again, unless it is forgotten before."""
_USAGE_KEPT: Final = timedelta(days=30)
"""How long it is known what an answer used that nobody had in that time."""

_CALLS: Final = Collection(
    "calls", (Index(("touched_ms",)),), private=("digest", "outcome"), key_days=KEPT.days + 1
)
_REPLICAS: Final = Collection("replicas", (Index(("touched_ms",)),))
_STOPS: Final = Collection("stops", (Index(("replica",)), Index(("touched_ms",))))
_KINDS_BY_NAME: Final = {kind.name: kind for kind in FAILURE_KINDS}
_SWEPT_AT_ONCE: Final = 500
_MAX_LISTED: Final = 50_000
"""Calls whose keys are kept, 70 bytes each; of more each is looked for in the store."""


class CallState(StrEnum):
    """What a stored call is at. Of these only an answer is kept; a call in the last two may be made anew."""

    RUNNING = "running"
    ANSWERED = "answered"
    FORGOTTEN = "forgotten"
    """Answered, and recorded by its caller: the text is gone, and it is not made again."""
    FAILED = "failed"
    """Those that waited for it get the reason."""
    RELEASED = "released"
    """Given up by its replica, so that those who waited for it make it anew, or swept with its answer, of which the usage is left."""


class StoredCall(Struct, frozen=True):
    """A call's document. `run` names one run of the whole call at one replica.

    `wanted` is another one whenever another replica has said that it still waits for the answer. `unread` is what answers used that
    were swept before their caller forgot them.
    """

    digest: str
    run: str
    replica: str
    state: CallState
    outcome: Mapping[str, Any]
    wanted: str = ""
    unread: Usage | None = None

    @property
    def owed(self) -> Usage | None:
        """What the next run has to count beside its own: what was used for an answer that is gone."""
        return self.unread if self.state in {CallState.RUNNING, CallState.RELEASED} else None

    def answer(self) -> GenerateCompleted:
        """Return the answer, marked as stored."""
        completed = ParseDict(self.outcome["answer"], GenerateCompleted(), ignore_unknown_fields=True)
        completed.stored = True
        return completed

    def failure(self) -> tuple[Failure, Usage]:
        """Return why there is no answer, and what was used all the same."""
        given = dict(self.outcome["failure"])
        kind = _KINDS_BY_NAME.get(given.pop("kind"), SERVER_ERROR)
        used = ParseDict(self.outcome["usage"], Usage(), ignore_unknown_fields=True)
        return Failure(kind, **given), used


class _LateClaim(Struct, frozen=True):
    digest: Digest
    seen: StoredCall | None


class CallStore:
    """The stored calls as one replica sees them. Every method may raise StorageError."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock
        self._watch = ClockWatch(clock)
        self._heartbeats = 0
        self._late: dict[str, _LateClaim] = {}
        self._listing = asyncio.Lock()
        self._listed: set[int] | None = None
        self.replica = secrets.token_hex(8)
        """This process's name among the replicas."""
        self._runs = count(1)

    async def prepare(self) -> None:
        """Make the collections if they are missing."""
        await self._documents.prepare(_CALLS, _REPLICAS, _STOPS)

    def name_run(self) -> str:
        """Return a name that no other run has, here or at another replica."""
        return f"{self.replica}-{next(self._runs)}"

    async def look(self, key: str) -> StoredCall | None:
        """Return the call as it is stored now."""
        found = await self._documents.get(_CALLS, key)
        if found is None:
            return None
        fields: Mapping[str, Any] = found.fields
        return StoredCall(
            fields["digest"],
            fields["run"],
            fields["replica"],
            CallState(fields["state"]),
            fields["outcome"] or {},
            fields["wanted"],
            ParseDict(unread, Usage(), ignore_unknown_fields=True)
            if (unread := fields.get("unread"))
            else None,
        )

    async def claim(self, key: str, run: str, digest: Digest, seen: StoredCall | None) -> bool:
        """Make the call this replica's, if it still is what was seen or is gone; whether it did."""
        fields = self._describe(run, digest(), CallState.RUNNING, None)
        if seen is not None:
            fields = {**fields, "unread": None if seen.owed is None else MessageToDict(seen.owed)}
        return await self._write(key, seen, fields)

    async def claim_late(self, key: str, run: str, digest: Digest, seen: StoredCall | None) -> bool:
        """Claim a call as `claim` does, but write so only with what comes of it. For a replica that is alone with its store."""
        if seen is None and await self._may_be_stored(key) and await self.look(key) is not None:
            return False
        self._late[run] = _LateClaim(digest, seen)
        return True

    async def end(self, key: str, run: str, state: CallState, outcome: Fields) -> bool:
        """Write what came of a run, if the call is still that run's; whether it did."""
        claim = self._late.get(run)
        if claim is not None:
            fields = self._describe(run, claim.digest(), state, outcome)
            if self._listed is not None:
                self._listed.add(hash(key))
            # What was given up is as if it had never begun.
            written = state is CallState.RELEASED or await self._write(key, claim.seen, fields)
            self._late.pop(run, None)  # another one may have written it meanwhile
            return written
        changes: Fields = {"state": state.value, "outcome": outcome, "touched_ms": self._now()}
        still = {"run": run, "state": CallState.RUNNING.value}
        return await self._documents.update(_CALLS, key, changes, still)

    def leave_out(self, run: str) -> None:
        """Write nothing of a run that was claimed late: its caller has recorded the answer."""
        self._late.pop(run, None)

    async def forget(self, keys: Sequence[str]) -> None:
        """Give up the texts of answers; the calls stay for their day, so that they are not made again."""
        changes: Fields = {"state": CallState.FORGOTTEN.value, "outcome": None}
        answered = {"state": CallState.ANSWERED.value}
        stored = [key for key in keys if self._may_be_listed(key)]
        # In one turn of the loop, so that they share a commit.
        await asyncio.gather(*[self._documents.update(_CALLS, key, changes, answered) for key in stored])

    async def correct(self, key: str, run: str, outcome: Fields) -> None:
        """Write more of what is known of a run that has failed."""
        still = {"run": run, "state": CallState.FAILED.value}
        await self._documents.update(_CALLS, key, {"outcome": outcome, "touched_ms": self._now()}, still)

    async def mark_wanted(self, key: str, run: str) -> None:
        """Note that a caller of this replica waits for a run's answer."""
        still = {"run": run, "state": CallState.RUNNING.value}
        await self._documents.update(_CALLS, key, {"wanted": secrets.token_hex(4)}, still)

    async def request_stop(self, seen: StoredCall) -> None:
        """Ask the replica that runs a call to stop it."""
        try:
            await self._documents.insert(
                _STOPS, seen.run, {"replica": seen.replica, "touched_ms": self._now()}
            )
        except DuplicateError:
            return

    async def is_stop_requested(self, seen: StoredCall) -> bool:
        """Return whether its replica still has to stop it."""
        return await self._documents.get(_STOPS, seen.run) is not None

    async def list_stop_requests(self) -> list[str]:
        """Return the runs that this replica is asked to stop."""
        return [found.key for found in await self._documents.find(_STOPS, {"replica": self.replica})]

    async def confirm_stop(self, run: str) -> None:
        """Remove the request to stop a run."""
        await self._documents.delete(_STOPS, run)

    async def send_heartbeat(self) -> None:
        """Write one more heartbeat of this replica."""
        self._heartbeats += 1
        changes: Fields = {"heartbeats": self._heartbeats, "touched_ms": self._now()}
        if not await self._documents.update(_REPLICAS, self.replica, changes):
            try:
                await self._documents.insert(_REPLICAS, self.replica, changes)
            except DuplicateError:  # an earlier write went through after all
                return

    async def count_heartbeats(self, replica: str) -> int:
        """Return how many heartbeats a replica has sent; 0: none."""
        found = await self._documents.get(_REPLICAS, replica)
        heartbeats = found.fields["heartbeats"] if found is not None else 0
        return heartbeats if isinstance(heartbeats, int) else 0

    async def sweep(self) -> int:
        """Forget what was last touched a day ago, but nothing if the clock was set just now; how many documents that was.

        Of an answer that its caller may have had no time to record, such as one before a long pause, it stays known what it used.
        """
        if not self._watch.is_steady():
            return 0
        before = self._now() - _milliseconds(KEPT)
        swept = 0
        for collection in (_CALLS, _REPLICAS, _STOPS):
            old = {"touched_ms": Below(before)}
            while found := await self._documents.find(collection, old, limit=_SWEPT_AT_ONCE):
                for each in found:
                    usage = _usage_of_answer(each.fields) if collection is _CALLS else None
                    if usage is None:
                        swept += await self._documents.delete(collection, each.key, old)
                    else:
                        swept += await self._documents.update(_CALLS, each.key, self._keep(usage), old)
        return swept

    def _keep(self, usage: Fields) -> Fields:
        """Return what is changed in a call of which only the usage is kept."""
        return {
            "digest": "",
            "state": CallState.RELEASED.value,
            "outcome": None,
            "unread": usage,
            "touched_ms": self._now() + _milliseconds(_USAGE_KEPT - KEPT),
        }

    async def _may_be_stored(self, key: str) -> bool:
        """Return False if a call is surely not stored, as nearly every one: the stored ones are listed once, and later ones are all this replica's."""
        async with self._listing:
            if self._listed is None:
                by_time = (Order("touched_ms"),)
                found = await self._documents.find(
                    _CALLS, {}, order=by_time, limit=_MAX_LISTED, fields=("touched_ms",)
                )
                self._listed = {hash(each.key) for each in found}
        return self._may_be_listed(key)

    def _may_be_listed(self, key: str) -> bool:
        """Return False if a call is surely none of those listed; True as long as none are listed."""
        return self._listed is None or len(self._listed) >= _MAX_LISTED or hash(key) in self._listed

    async def _write(self, key: str, seen: StoredCall | None, fields: Fields) -> bool:
        if seen is not None:
            as_seen = {"run": seen.run, "state": seen.state.value}
            if await self._documents.update(_CALLS, key, fields, as_seen):
                return True
        try:  # what was seen may have been swept meanwhile
            await self._documents.insert(_CALLS, key, fields)
        except DuplicateError:
            return False
        return True

    def _describe(self, run: str, digest: str, state: CallState, outcome: Fields | None) -> Fields:
        return {
            "digest": digest,
            "run": run,
            "replica": self.replica,
            "state": state.value,
            "outcome": outcome,
            "wanted": "",
            "touched_ms": self._now(),
        }

    def _now(self) -> int:
        return round(self._clock.now().timestamp() * 1000)


def _milliseconds(time: timedelta) -> int:
    return int(time.total_seconds() * 1000)


def _usage_of_answer(fields: Mapping[str, Any]) -> Fields | None:
    """Return what the answer of a call used; None if it has none, or cannot be read."""
    if fields["state"] != CallState.ANSWERED.value:
        return None
    usage: Fields = (fields["outcome"] or {}).get("answer", {}).get("usage", {})
    return usage or None


def answer_fields(answer: GenerateCompleted) -> Fields:
    """Return an answer as it is stored."""
    return {"answer": MessageToDict(answer)}


def failure_fields(failure: Failure, usage: Usage) -> Fields:
    """Return a failure as it is stored, for replicas that wait for the call."""
    given: Fields = {
        "kind": failure.kind.name,
        "message": failure.message,
        "status": failure.status,
        "retry_after": failure.retry_after,
        "route": failure.route,
    }
    return {"failure": given, "usage": MessageToDict(usage)}
