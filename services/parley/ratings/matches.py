"""The matches, corrections and feedback of each tenant, a log for each, and the table of ratings."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final
from uuid import uuid4

from parley.ratings.match import CORRECTIONS, FEEDBACK, MATCHES, Correction, Feedback, Match
from parley.ratings.table import Table
from parley.runtime.unreadable import report_unreadable
from parley.storage.ports import AppendConflictError, Log, Record
from parley.v1.ratings_pb2 import RatingChange

_PAGE: Final = 1000
_MAX_TENANTS: Final = 256
"""The maximum number of tables in memory."""


class DebateReusedError(Exception):
    """This debate already has another recorded outcome."""


class FeedbackReusedError(Exception):
    """This number of the debate already has other feedback."""


class CorrectionReusedError(Exception):
    """This number of the debate already has another correction."""


class NoMatchError(Exception):
    """There is no recorded match of this debate."""


@dataclass(slots=True)
class _TenantRatings:
    """A tenant's table, and how far its logs were read.

    Attributes:
        is_given: Whether the table was given to a caller, who may be reading it.
    """

    table: Table = field(default_factory=Table)
    sequence: int = 0
    feedback_sequence: int = 0
    correction_sequence: int = 0
    is_given: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Matches:
    """The recorded matches and feedback, and the ratings that follow, whichever replica recorded them."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._tenants: OrderedDict[str, _TenantRatings] = OrderedDict()

    async def table(self, tenant: str) -> Table:
        """Return the tenant's ratings after all matches and feedback recorded so far.

        Raise StorageError if the log cannot be read.
        """
        followed = self._tenant_ratings(tenant)
        async with followed.lock:
            await self._catch_up(tenant, followed)
            await self._catch_up_corrections(tenant, followed)
            await self._catch_up_feedback(tenant, followed)
            followed.is_given = True
        return followed.table

    async def record(self, tenant: str, match: Match) -> tuple[bool, tuple[RatingChange, ...]]:
        """Record a match once; it is durable when this returns.

        Return whether it was recorded before, and which changes it made. Raise DebateReusedError if its debate already
        has another recorded outcome, and StorageError if the log cannot be read or written.
        """
        followed = self._tenant_ratings(tenant)
        append_id = uuid4().hex
        async with followed.lock:
            while True:
                await self._catch_up(tenant, followed)
                if (counted := followed.table.past_match(match.debate_id)) is not None:
                    if not counted.recorded.has_same_outcome(match):
                        raise DebateReusedError(match.debate_id)
                    return True, counted.changes
                record = Record(followed.sequence + 1, append_id, (MATCHES.dump_json(match),))
                try:
                    await self._log.append(_log_name(tenant), record)
                except AppendConflictError:
                    continue  # another replica was first; what it wrote is read next
                followed.sequence = record.last
                return False, followed.table.count(match)

    async def record_feedback(self, tenant: str, feedback: Feedback) -> bool:
        """Record feedback on a debate once; it is durable when this returns.

        Return whether it, or a later one, was recorded before. Raise FeedbackReusedError if its number already has
        other feedback, and StorageError if the log cannot be read or written.
        """
        followed = self._tenant_ratings(tenant)
        append_id = uuid4().hex
        async with followed.lock:
            while True:
                await self._catch_up_feedback(tenant, followed)
                counted = followed.table.feedback(feedback.debate_id)
                if counted is not None and counted.number >= feedback.number:
                    if counted.number == feedback.number and not counted.has_same_content(feedback):
                        raise FeedbackReusedError(feedback.debate_id)
                    return True
                record = Record(followed.feedback_sequence + 1, append_id, (FEEDBACK.dump_json(feedback),))
                try:
                    await self._log.append(_feedback_log_name(tenant), record)
                except AppendConflictError:
                    continue  # another replica was first; what it wrote is read next
                followed.feedback_sequence = record.last
                followed.table.count_feedback(feedback)
                return False

    async def correct(self, tenant: str, correction: Correction) -> tuple[bool, tuple[RatingChange, ...]]:
        """Record a correction once; it is durable when this returns. Its match, if it has one, is of the recorded domain.

        Return whether it, or a later one, was recorded before, and what the match as it now stands changed.

        Raises:
            NoMatchError: no match of its debate is recorded.
            CorrectionReusedError: another correction is recorded under its number.
            StorageError: a log cannot be read or written.
        """
        followed = self._tenant_ratings(tenant)
        append_id = uuid4().hex
        async with followed.lock:
            while True:
                await self._catch_up(tenant, followed)
                await self._catch_up_corrections(tenant, followed)
                if (past := followed.table.past_match(correction.debate_id)) is None:
                    raise NoMatchError(correction.debate_id)
                made = _with_recorded_domain(correction, past.recorded)
                if past.correction is not None and past.correction.number >= made.number:
                    if past.correction.number == made.number and not past.correction.has_same_content(made):
                        raise CorrectionReusedError(made.debate_id)
                    return True, past.changes
                record = Record(followed.correction_sequence + 1, append_id, (CORRECTIONS.dump_json(made),))
                try:
                    await self._log.append(_correction_log_name(tenant), record)
                except AppendConflictError:
                    continue  # another replica was first; what it wrote is read next
                followed.correction_sequence = record.last
                followed.table.correct([made])
                return False, followed.table.count(past.recorded)

    def _tenant_ratings(self, tenant: str) -> _TenantRatings:
        """Return the tenant's table, and drop the one that was used longest ago; that one is read again from the logs.

        Any caller may name a tenant. A dropped table in use stays usable: two tables of a tenant follow the same logs.
        """
        followed = self._tenants.setdefault(tenant, _TenantRatings())
        self._tenants.move_to_end(tenant)
        if len(self._tenants) > _MAX_TENANTS:
            self._tenants.popitem(last=False)
        return followed

    async def _catch_up_corrections(self, tenant: str, followed: _TenantRatings) -> None:
        read: list[Correction] = []

        def take(entry: bytes) -> None:
            read.append(CORRECTIONS.validate_json(entry))

        log, after = _correction_log_name(tenant), followed.correction_sequence
        followed.correction_sequence = await self._read_entries(followed, log, after, take)
        await _fold(followed, partial(followed.table.correct, read))

    async def _catch_up(self, tenant: str, followed: _TenantRatings) -> None:
        def take(entry: bytes) -> None:
            followed.table.count(MATCHES.validate_json(entry))

        followed.sequence = await self._read_entries(followed, _log_name(tenant), followed.sequence, take)

    async def _catch_up_feedback(self, tenant: str, followed: _TenantRatings) -> None:
        def take(entry: bytes) -> None:
            followed.table.count_feedback(FEEDBACK.validate_json(entry))

        followed.feedback_sequence = await self._read_entries(
            followed, _feedback_log_name(tenant), followed.feedback_sequence, take
        )

    async def _read_entries(
        self, followed: _TenantRatings, log: str, after: int, take: Callable[[bytes], None]
    ) -> int:
        """Pass the entries of a log after a sequence to `take`, and return the sequence of the last one."""
        while records := await self._log.read(log, after, _PAGE):
            await _fold(followed, partial(_take_entries, log, records, after, take))
            after = records[-1].last
            if len(records) < _PAGE:
                break
        return after


async def _fold(followed: _TenantRatings, work: Callable[[], None]) -> None:
    """Do a part of the fold: in a thread while nobody can read the table, since a start may have to fold a hundred thousand matches."""
    if followed.is_given:
        work()
        return
    folding = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(folding)
    except asyncio.CancelledError:
        await asyncio.wait([folding])  # or else the next caller would fold into the table at the same time
        raise


def _take_entries(log: str, records: Sequence[Record], after: int, take: Callable[[bytes], None]) -> None:
    for record in records:
        for place, entry in enumerate(record.entries):
            if record.first + place > after:
                try:
                    take(entry)
                except Exception as error:  # noqa: BLE001 - one entry must not end all ratings
                    report_unreadable("ratings entry", f"{log} {record.first + place}", error)


def _with_recorded_domain(correction: Correction, recorded: Match) -> Correction:
    """Return the correction with the domain and time of the recorded match."""
    if correction.match is None:
        return correction
    match = replace(correction.match, domain=recorded.domain, recorded_at=recorded.recorded_at)
    return replace(correction, match=match)


def _log_name(tenant: str) -> str:
    return f"matches/{tenant}"


def _feedback_log_name(tenant: str) -> str:
    return f"feedback/{tenant}"


def _correction_log_name(tenant: str) -> str:
    return f"corrections/{tenant}"
