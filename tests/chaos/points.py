"""Named crash points: where a process kills itself, before or after its nth write or call of a kind.

A point is written `before:append.concluded:1` or `after:update.debates.status:2`. Its middle part names a write or a
call (see `CrashingLog`, `CrashingDocuments`, `CrashingVectors` and `process.py`), the last one counts from 1.
"""

import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, ParamSpec, TypeVar
from uuid import UUID

from google.protobuf.message import DecodeError

from parley.storage.ports import (
    AppendConflictError,
    Collection,
    Document,
    Documents,
    Fields,
    Insert,
    Log,
    Point,
    Record,
    Update,
    VectorCollection,
    Vectors,
    Where,
)
from parley.v1.event_pb2 import Event
from tests.support.passing_log import PassingLog

CRASHED = "chaos: killed at"
"""What a process writes just before, so that its death can be told from any other."""

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(slots=True)
class CrashPoint:
    """One point of a process, and how often it was passed. `when` is `before` or `after`."""

    when: str
    name: str
    number: int
    _passed: dict[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "CrashPoint":
        """Read a point as it is written."""
        when, name, number = text.split(":")
        if when not in {"before", "after"}:
            raise ValueError(f"a crash point is before or after something, not {when!r}")
        return cls(when, name, int(number))

    def reached(self, when: str, names: Iterable[str]) -> None:
        """Kill this process if this is the point; what is done goes by several names at once."""
        if when != self.when or self.name not in names:
            return
        self._passed[when] = self._passed.get(when, 0) + 1
        if self._passed[when] == self.number:
            _die(f"{self.when}:{self.name}:{self.number}")


def wrap_call(point: CrashPoint, name: str, call: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Return the call with the point before and after it."""

    async def call_between_points(*args: P.args, **kwargs: P.kwargs) -> T:
        point.reached("before", [name])
        answer = await call(*args, **kwargs)
        point.reached("after", [name])
        return answer

    return call_between_points


class CrashingLog(PassingLog):
    """A log whose appends are points: `append`, and `append.KIND` and `append.KIND.KEY` for each event in the record.

    What comes with an append is written by itself, as MongoDB does: so a process can die in between.
    """

    def __init__(self, log: Log, documents: "CrashingDocuments", point: CrashPoint) -> None:
        super().__init__(log)
        self._documents = documents
        self._point = point

    async def append(
        self,
        log: str,
        record: Record,
        *,
        insert: Insert | None = None,
        update: Update | None = None,
        **_more: Any,
    ) -> None:
        if insert is not None:
            await self._documents.insert(insert.collection, insert.key, insert.fields)
        names = {"append", *(f"append.{each}" for entry in record.entries for each in _names(entry))}
        self._point.reached("before", names)
        await self._log.append(log, record)
        self._point.reached("after", names)
        if update is not None:
            await self._documents.update(update.collection, update.key, update.changes, update.where)


class CrashingDocuments:
    """Documents whose writes are points: `insert.COLLECTION`, `put.COLLECTION`, `update.COLLECTION.FIELD`, `delete.COLLECTION`.

    An update that sets several fields is one of each, and of all of them: `update.debates.address+owner`.
    """

    def __init__(self, documents: Documents, point: CrashPoint) -> None:
        self._documents = documents
        self._point = point

    async def prepare(self, *collections: Collection) -> None:
        await self._documents.prepare(*collections)

    async def get(self, collection: Collection, key: str) -> Document | None:
        return await self._documents.get(collection, key)

    async def insert(self, collection: Collection, key: str, fields: Fields) -> None:
        names = [f"insert.{collection.name}"]
        self._point.reached("before", names)
        await self._documents.insert(collection, key, fields)
        self._point.reached("after", names)

    async def put(
        self, collection: Collection, documents: Mapping[str, Fields], if_new: Fields | None = None
    ) -> None:
        names = [f"put.{collection.name}"]
        self._point.reached("before", names)
        await self._documents.put(collection, documents, if_new)
        self._point.reached("after", names)

    async def find(self, *given: Any, **named: Any) -> Sequence[Document]:
        return await self._documents.find(*given, **named)

    async def count(self, collection: Collection, where: Where) -> int:
        return await self._documents.count(collection, where)

    async def update(
        self, collection: Collection, key: str, changes: Fields, where: Where | None = None
    ) -> bool:
        written = {*changes, "+".join(sorted(changes))}
        names = [f"update.{collection.name}", *(f"update.{collection.name}.{each}" for each in written)]
        self._point.reached("before", names)
        changed = await self._documents.update(collection, key, changes, where)
        self._point.reached("after", names)
        return changed

    async def delete(self, collection: Collection, key: str, where: Where | None = None) -> bool:
        names = [f"delete.{collection.name}"]
        self._point.reached("before", names)
        deleted = await self._documents.delete(collection, key, where)
        self._point.reached("after", names)
        return deleted


class CrashingVectors:
    """Vectors whose writes are points: `vectors.upsert` and `vectors.delete`."""

    def __init__(self, vectors: Vectors, point: CrashPoint) -> None:
        self.prepare, self.search, self.count, self.ping = (
            vectors.prepare,
            vectors.search,
            vectors.count,
            vectors.ping,
        )
        self._upsert = wrap_call(point, "vectors.upsert", vectors.upsert)
        self._delete = wrap_call(point, "vectors.delete", vectors.delete)

    async def upsert(self, collection: VectorCollection, points: Sequence[Point]) -> None:
        await self._upsert(collection, points)

    async def delete(self, collection: VectorCollection, ids: Sequence[UUID]) -> None:
        await self._delete(collection, ids)


class UnfencedLog(CrashingLog):
    """A log without its lock: an append that meets another's record goes behind it. The checker must notice."""

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        while True:
            try:
                await super().append(log, record, **beside)
            except AppendConflictError:
                beside.pop("insert", None)
                # A store that is cut off may show nothing of it yet: then the same is tried again.
                if there := await self._log.read(log, record.first - 1):
                    record = Record(there[-1].last + 1, record.append_id, record.entries)
            else:
                return


def _names(entry: bytes) -> Sequence[str]:
    """The names of a debate's event, by its kind and its key; none for an entry of another service's log."""
    try:
        event = Event.FromString(entry)
    except DecodeError:
        return ()
    kind = event.WhichOneof("payload") or ""
    return kind, f"{kind}.{event.key}"


def _die(point: str) -> NoReturn:
    os.write(2, f"{CRASHED} {point}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a process outlived its SIGKILL")
