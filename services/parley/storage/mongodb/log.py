"""The Log port on MongoDB: one document for each record, whose `_id` is the log and the position.

There are no gaps: a record is inserted only behind one that a majority has and that ends just before it. The second
writer at a position gets a duplicate `_id`, whatever either has read; no read decides a race.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import pymongo
from pymongo import ASCENDING
from pymongo.errors import DuplicateKeyError, OperationFailure

from parley.runtime.backoff import Backoff, retry
from parley.runtime.clock import SystemClock
from parley.storage.checks import check_update
from parley.storage.mongodb.database import LOG, Database, insert_once, map_errors
from parley.storage.mongodb.documents import MongodbDocuments
from parley.storage.ports import (
    AppendConflictError,
    AppendGapError,
    Insert,
    Record,
    StoreUnavailableError,
    Update,
)
from parley.storage.tails import PAGE, Tails

_MAX_ATTEMPTS = 3
_APPEND_BACKOFF = Backoff(first=0.1, factor=4.0, maximum=0.4)
_STREAM_BACKOFF = Backoff(first=1.0, maximum=1.0)
_IDLE_MILLISECONDS = 1000
"""How long the server waits for a change before it answers that there is none."""
_STREAM_PATIENCE = 10.0
"""Seconds for such an answer. The client's own `timeoutMS` may be shorter than the wait."""
_NO_STREAM_CODES = (59, 115, 40324, 40573)
"""Error codes of servers without change streams: no such command, no such stage, no replica set."""

_logger = logging.getLogger(__name__)


class MongodbLog:
    """Append-only logs in one MongoDB database."""

    def __init__(self, database: Database, *, poll_interval: float = 0.5) -> None:
        """Followers get another process's appends within `poll_interval` seconds (`Tails`), sooner while `listen` runs."""
        self._records = database[LOG]
        self._documents = MongodbDocuments(database)
        self._tails = Tails(self._read_news, poll_interval)

    async def append(
        self, log: str, record: Record, *, insert: Insert | None = None, update: Update | None = None
    ) -> None:
        """See `Log.append`. An append whose outcome is unknown is sent again, unchanged, a few times."""
        if update is not None:
            check_update(update)
        if insert is not None:
            await self._documents.insert(insert.collection, insert.key, insert.fields)
        await retry(
            lambda: self._append(log, record),
            on=StoreUnavailableError,
            backoff=_APPEND_BACKOFF,
            clock=SystemClock(),
            attempts=_MAX_ATTEMPTS,
        )
        self._tails.offer(log, record, is_own=True)
        if update is not None:
            await self._documents.update(update.collection, update.key, update.changes, update.where)

    async def read(self, log: str, after: int = 0, limit: int = PAGE) -> Sequence[Record]:
        """See `Log.read`."""
        if limit < 1:
            raise ValueError(f"limit is {limit}; it must be at least 1")
        with map_errors():
            found = self._records.find(
                {"log": log, "last": {"$gt": after}}, sort=[("last", ASCENDING)], limit=limit
            )
            return [_record(one) async for one in found]

    async def _read_news(self, positions: Mapping[str, int]) -> Mapping[str, Sequence[Record]]:
        news: defaultdict[str, list[Record]] = defaultdict(list)
        after = [{"log": log, "last": {"$gt": last}} for log, last in positions.items()]
        order = [("log", ASCENDING), ("last", ASCENDING)]
        with map_errors():
            async for one in self._records.find({"$or": after}, sort=order, limit=PAGE):
                news[one["log"]].append(_record(one))
        return news

    def follow(self, log: str, after: int = 0) -> AsyncGenerator[Record, None]:
        """See `Log.follow`."""
        return self._tails.follow(log, after)

    async def delete(self, log: str) -> None:
        """See `Log.delete`."""
        with map_errors():
            await self._records.delete_many({"log": log})
        self._tails.forget(log)

    async def listen(self) -> None:
        """Wake followers by a change stream, until cancelled; return if the server has none.

        Followers never depend on it: they find missed records when they poll.
        """
        reported = ""
        for pause in _STREAM_BACKOFF.pauses():
            try:
                await self._watch_inserts()
            except Exception as error:  # noqa: BLE001 - whatever it was, the next stream may work
                if isinstance(error, OperationFailure) and error.code in _NO_STREAM_CODES:
                    _logger.info(
                        "followers of logs poll, because this MongoDB has no change streams: %s", error
                    )
                    return
                if reported != (reported := f"{type(error).__name__}: {error}"):
                    _logger.warning("followers of logs poll until a change stream begins again: %s", reported)
            await asyncio.sleep(pause)

    async def _watch_inserts(self) -> None:
        """Offer what is inserted, until the stream ends. An idle stream is no failure: only each answer has a time limit.

        `async for` has one time limit until the next change, and `pymongo.timeout(None)` does not lift the client's.
        """
        inserts = [{"$match": {"operationType": "insert"}}]
        async with await self._records.watch(inserts, max_await_time_ms=_IDLE_MILLISECONDS) as changes:
            self._tails.begin_notices()
            while changes.alive:
                with pymongo.timeout(_STREAM_PATIENCE):
                    change = await changes.try_next()
                self._tails.hear()
                if change is not None:
                    inserted = change["fullDocument"]
                    self._tails.offer(inserted["log"], _record(inserted))

    async def _append(self, log: str, record: Record) -> None:
        if record.first > 1 and not await self._find_one({"log": log, "last": record.first - 1}):
            if await self._find_one({"log": log, "last": {"$gte": record.first}}):
                raise _conflict(log, record)
            raise AppendGapError(
                f"log {log} ends before {record.first - 1}; a record at {record.first} would leave a gap"
            )
        try:
            with map_errors():
                await insert_once(self._records, _document(log, record))
        except DuplicateKeyError:
            await self._require_same(log, record)

    async def _require_same(self, log: str, record: Record) -> None:
        there = await self._find_one({"_id": _id(log, record.first)})
        if there is None:  # a majority does not have it yet: it may still be rolled back
            raise StoreUnavailableError(
                f"log {log}: it is not decided yet which writer's record is at {record.first}"
            )
        if there["append_id"] != record.append_id:
            raise _conflict(log, record)

    async def _find_one(self, query: Mapping[str, Any]) -> dict[str, Any] | None:
        with map_errors():
            return await self._records.find_one(query, {"append_id": 1})


def _id(log: str, first: int) -> str:
    return f"{log}/{first:015d}"


def _document(log: str, record: Record) -> dict[str, Any]:
    return {
        "_id": _id(log, record.first),
        "log": log,
        "first": record.first,
        "last": record.last,
        "append_id": record.append_id,
        "entries": list(record.entries),
    }


def _record(found: Mapping[str, Any]) -> Record:
    return Record(found["first"], found["append_id"], tuple(found["entries"]))


def _conflict(log: str, record: Record) -> AppendConflictError:
    return AppendConflictError(f"log {log} has another record at {record.first}")
