"""Calls as documents: what was asked, whose it is, and what came of it.

A call's document is written before its first request goes out, so that no two replicas pay for one call, and holds
the answer before any caller hears `completed`. Every change is conditional on what was seen. A replica that runs calls
says that it lives with a counter of its own, so that a lease costs one write for all of its calls; who waits for a
lease counts by its own clock.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from parley.gateway.call import Answer, Usage
from parley.gateway.errors_table import SERVER_ERROR, TABLE, AttemptFailed
from parley.gateway.tools import ToolUse
from parley.runtime.clock import Clock
from parley.storage.ports import Below, Collection, Documents, DuplicateError, Fields, Index

__all__ = ["KEPT", "CallKey", "CallState", "CallStore", "StoredCall", "answer_fields", "failure_fields"]

KEPT: Final = timedelta(days=1)
"""How long an answer can be had again."""

_CALLS: Final = Collection("calls", (Index(("touched_ms",)),))
_REPLICAS: Final = Collection("replicas", (Index(("touched_ms",)),))
_STOPS: Final = Collection("stops", (Index(("replica",)), Index(("touched_ms",))))
_ROWS: Final = {row.name: row for row in TABLE}
_SWEPT_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class CallKey:
    """The name of a call that is the same wherever it is asked from."""

    tenant: str
    debate_id: str
    step: str
    attempt: int

    def text(self) -> str:
        """The name as a document's key."""
        return json.dumps([self.tenant, self.debate_id, self.step, self.attempt])


class CallState(StrEnum):
    """What a stored call is at. Of these only an answer is kept; a call in the last two may be made anew."""

    RUNNING = "running"
    ANSWERED = "answered"
    FAILED = "failed"
    """Those that waited for it hear why."""
    RELEASED = "released"
    """Given up by its replica; those that waited for it make it anew."""


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A call's document. `run` names one try of one replica at the whole call.

    `wanted` is another one whenever another replica has said that it still waits for the answer.
    """

    digest: str
    run: str
    replica: str
    state: CallState
    outcome: Mapping[str, Any]
    wanted: str = ""

    def answer(self) -> tuple[Answer, Usage, float]:
        """What was answered, what it took, and the seconds from the first attempt to the end."""
        given = self.outcome
        fields = dict(given["answer"])
        used = tuple(ToolUse(**each) for each in fields.pop("tool_calls", ()))
        return Answer(**fields, tool_calls=used), Usage(**given["usage"]), float(given["seconds"])

    def failure(self) -> tuple[AttemptFailed, Usage]:
        """Why there is no answer."""
        given = dict(self.outcome["failure"])
        row = _ROWS.get(given.pop("row"), SERVER_ERROR)
        return AttemptFailed(row, **given), Usage(**self.outcome["usage"])


class CallStore:
    """The stored calls as one replica sees them. Every method may raise StorageError."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock
        self._beat = 0
        self.replica = secrets.token_hex(8)
        """This process's name among the replicas."""

    async def prepare(self) -> None:
        """Makes the collections where they are missing."""
        await self._documents.prepare(_CALLS, _REPLICAS, _STOPS)

    async def look(self, key: CallKey) -> StoredCall | None:
        """The call as it is stored now."""
        found = await self._documents.get(_CALLS, key.text())
        if found is None:
            return None
        fields: Mapping[str, Any] = found.fields
        return StoredCall(
            fields["digest"],
            fields["run"],
            fields["replica"],
            CallState(fields["state"]),
            fields["outcome"] or {},
            fields.get("wanted") or "",
        )

    async def claim(self, key: CallKey, run: str, digest: str, seen: StoredCall | None) -> bool:
        """Makes the call this replica's, if it still is what was seen; whether it did."""
        fields: Fields = {
            "digest": digest,
            "run": run,
            "replica": self.replica,
            "state": CallState.RUNNING.value,
            "outcome": None,
            "wanted": "",
            "touched_ms": self._now(),
        }
        if seen is not None:
            as_seen = {"run": seen.run, "state": seen.state.value}
            return await self._documents.update(_CALLS, key.text(), fields, as_seen)
        try:
            await self._documents.insert(_CALLS, key.text(), fields)
        except DuplicateError:
            return False
        return True

    async def end(self, key: CallKey, run: str, state: CallState, outcome: Fields) -> bool:
        """Writes what came of a run, if the call is still that run's; whether it did."""
        changes: Fields = {"state": state.value, "outcome": outcome, "touched_ms": self._now()}
        still = {"run": run, "state": CallState.RUNNING.value}
        return await self._documents.update(_CALLS, key.text(), changes, still)

    async def want(self, key: CallKey, run: str) -> None:
        """Says that somebody at this replica waits for a run's answer."""
        still = {"run": run, "state": CallState.RUNNING.value}
        await self._documents.update(_CALLS, key.text(), {"wanted": secrets.token_hex(4)}, still)

    async def ask_to_stop(self, seen: StoredCall) -> None:
        """Tells the replica that runs a call to stop it."""
        try:
            await self._documents.insert(
                _STOPS, seen.run, {"replica": seen.replica, "touched_ms": self._now()}
            )
        except DuplicateError:
            return

    async def asked_to_stop(self, seen: StoredCall) -> bool:
        """Whether its replica has not taken that up yet."""
        return await self._documents.get(_STOPS, seen.run) is not None

    async def stops(self) -> list[str]:
        """The runs that this replica is asked to stop."""
        return [found.key for found in await self._documents.find(_STOPS, {"replica": self.replica})]

    async def stopped(self, run: str) -> None:
        """Says that a run was stopped."""
        await self._documents.delete(_STOPS, run)

    async def beat(self) -> None:
        """Says that this replica lives."""
        self._beat += 1
        changes: Fields = {"beat": self._beat, "touched_ms": self._now()}
        if not await self._documents.update(_REPLICAS, self.replica, changes):
            try:
                await self._documents.insert(_REPLICAS, self.replica, changes)
            except DuplicateError:  # an earlier try went through after all
                return

    async def beat_of(self, replica: str) -> int:
        """How often a replica has said that it lives; 0: never."""
        found = await self._documents.get(_REPLICAS, replica)
        beat = found.fields["beat"] if found is not None else 0
        return beat if isinstance(beat, int) else 0

    async def sweep(self) -> int:
        """Forgets what was last touched a day ago; how many documents that was."""
        before = self._now() - int(KEPT.total_seconds() * 1000)
        swept = 0
        for collection in (_CALLS, _REPLICAS, _STOPS):
            old = {"touched_ms": Below(before)}
            while found := await self._documents.find(collection, old, limit=_SWEPT_AT_ONCE):
                for each in found:
                    swept += await self._documents.delete(collection, each.key, old)
        return swept

    def _now(self) -> int:
        return round(self._clock.now().timestamp() * 1000)


def answer_fields(answer: Answer, usage: Usage, seconds: float) -> Fields:
    """An answer as it is stored."""
    given = _fields(answer)
    given["tool_calls"] = [_fields(each) for each in answer.tool_calls]
    return {"answer": given, "usage": _fields(usage), "seconds": seconds}


def failure_fields(failure: AttemptFailed, usage: Usage) -> Fields:
    """A failure as it is stored, for those that wait for the call elsewhere."""
    said: Fields = {
        "row": failure.row.name,
        "message": failure.message,
        "status": failure.status,
        "retry_after": failure.retry_after,
        "route": failure.route,
    }
    return {"failure": said, "usage": _fields(usage)}


def _fields(value: Answer | Usage | ToolUse) -> dict[str, Any]:
    return {name: getattr(value, name) for name in type(value).__slots__}
