"""The matches, corrections and feedback of each tenant, a log for each, and the table of ratings."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from typing import Final
from uuid import uuid4

from msgspec import Struct, field

from parley.ratings.entries import find_entry, read_matches, take_entries
from parley.ratings.match import CORRECTIONS, FEEDBACK, MATCHES, Correction, Feedback, Match
from parley.ratings.snapshot import (
    MAX_MATCHES,
    SNAPSHOTS,
    Snapshot,
    mark_of,
    snapshot_from_fields,
    snapshot_to_fields,
)
from parley.ratings.table import MATCHES_PER_PAGE, PastMatch, Table
from parley.runtime.logs import get_logger
from parley.runtime.unreadable import report_unreadable
from parley.storage.ports import (
    AppendConflictError,
    Below,
    Documents,
    DuplicateError,
    Log,
    Record,
    StorageError,
    StoreDamagedError,
)
from parley.v1.ratings_pb2 import RatingChange

_logger = get_logger(__name__)
_PAGE: Final = 1000
_MAX_TENANTS: Final = 256
"""The maximum number of tables in memory."""
_SNAPSHOT_EVERY: Final = 1000
"""Matches after which a new snapshot is kept: a start counts no more."""


class DebateReusedError(Exception):
    """This debate already has another recorded outcome."""


class FeedbackReusedError(Exception):
    """This number of the debate already has other feedback."""


class CorrectionReusedError(Exception):
    """This number of the debate already has another correction."""


class NoMatchError(Exception):
    """There is no recorded match of this debate."""


class _TenantRatings(Struct):
    """A tenant's table, and how far its logs were read.

    Attributes:
        is_given: Whether the table was given to a caller, who may be reading it.
        is_restored: Whether a snapshot was looked for.
        saved_matches: How many matches the last snapshot has; `saved_corrections`: its `correction_sequence`.
    """

    table: Table = field(default_factory=Table)
    sequence: int = 0
    feedback_sequence: int = 0
    correction_sequence: int = 0
    is_given: bool = False
    is_restored: bool = False
    saved_matches: int = 0
    saved_corrections: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Matches:
    """The recorded matches and feedback, and the ratings that follow, whichever replica recorded them."""

    def __init__(self, log: Log, documents: Documents | None = None, *, reading: bool = False) -> None:
        """Keep snapshots in `documents`; None: neither read nor keep any. `reading`: keep no new ones."""
        self._log = log
        self._documents = documents
        self._keeps = documents is not None and not reading
        self._is_prepared = False
        self._tenants: OrderedDict[str, _TenantRatings] = OrderedDict()

    async def read_table(self, tenant: str) -> Table:
        """Return the tenant's ratings after all matches and feedback recorded so far.

        Raise StorageError if the log cannot be read.
        """
        followed = self._follow(tenant)
        async with followed.lock:
            await self._catch_up(tenant, followed)
            await self._catch_up_corrections(tenant, followed)
            await self._catch_up_feedback(tenant, followed)
            followed.is_given = True
            await self._save_if_due(tenant, followed)
        return followed.table

    async def read_past_matches(
        self, tenant: str, before: int | None
    ) -> AsyncIterator[tuple[int, PastMatch]]:
        """Yield the matches with their places, the last recorded first; places count from the first recorded match, from 1.

        With `before`, only those at smaller places. Raise StorageError if the log cannot be read.
        """
        table, followed = await self.read_table(tenant), self._follow(tenant)
        debates = list(table.debates())
        for place in range(len(debates) if before is None else min(before - 1, len(debates)), 0, -1):
            past = table.past_match(debates[place - 1])
            if past is None:
                async with followed.lock:
                    past = await self._load(tenant, table, debates[place - 1])
            if past is not None:
                yield place, past

    async def record(self, tenant: str, match: Match) -> tuple[bool, tuple[RatingChange, ...]]:
        """Record a match once; it is durable when this returns.

        Return whether it was recorded before, and which changes it made. Raise DebateReusedError if its debate already
        has another recorded outcome, and StorageError if the log cannot be read or written.
        """
        followed = self._follow(tenant)
        append_id = uuid4().hex
        async with followed.lock:
            # A log that was read before is not read again here: if others wrote to it since, the append is refused.
            if not followed.sequence:
                await self._catch_up(tenant, followed)
            while True:
                counted = await self._load(tenant, followed.table, match.debate_id)
                if counted is not None:
                    if not counted.recorded.has_same_outcome(match):
                        raise DebateReusedError(match.debate_id)
                    return True, counted.changes
                if match.debate_id in followed.table.debates():
                    return True, ()  # its entry can no longer be read, and another one would never be counted
                record = Record(followed.sequence + 1, append_id, (MATCHES.dump_json(match),))
                try:
                    await self._log.append(_log_name(tenant), record)
                except AppendConflictError:  # another replica was first
                    await self._catch_up(tenant, followed)
                    continue
                followed.sequence = record.last
                changes = followed.table.count(match, record.last)
                await self._save_if_due(tenant, followed)
                return False, changes

    async def record_feedback(self, tenant: str, feedback: Feedback) -> bool:
        """Record feedback on a debate once; it is durable when this returns.

        Return whether it, or a later one, was recorded before. Raise FeedbackReusedError if its number already has
        other feedback, and StorageError if the log cannot be read or written.
        """
        followed = self._follow(tenant)
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
        followed = self._follow(tenant)
        append_id = uuid4().hex
        async with followed.lock:
            while True:
                await self._catch_up(tenant, followed)
                await self._catch_up_corrections(tenant, followed)
                past = await self._load(tenant, followed.table, correction.debate_id)
                if past is None:
                    raise NoMatchError(correction.debate_id)
                made = _with_recorded_domain(correction, past.recorded)
                if past.correction is not None and past.correction.number >= made.number:
                    if past.correction.number == made.number and not past.correction.has_same_content(made):
                        raise CorrectionReusedError(made.debate_id)
                    return True, past.changes
                await self._load_all(tenant, followed.table)
                record = Record(followed.correction_sequence + 1, append_id, (CORRECTIONS.dump_json(made),))
                try:
                    await self._log.append(_correction_log_name(tenant), record)
                except AppendConflictError:
                    continue  # another replica was first; what it wrote is read next
                followed.correction_sequence = record.last
                followed.table.correct([made])
                await self._save_if_due(tenant, followed)
                corrected = await self._load(tenant, followed.table, made.debate_id)
                return False, corrected.changes if corrected else ()

    def _follow(self, tenant: str) -> _TenantRatings:
        """Return the tenant's table, and drop the one that was used longest ago; that one is read again from the logs.

        Any caller may name a tenant. A dropped table in use stays usable: two tables of a tenant follow the same logs.
        """
        followed = self._tenants.setdefault(tenant, _TenantRatings())
        self._tenants.move_to_end(tenant)
        if len(self._tenants) > _MAX_TENANTS:
            self._tenants.popitem(last=False)
        return followed

    async def _restore(self, tenant: str, followed: _TenantRatings) -> None:
        """Begin with the tenant's snapshot, if it is of these logs as they are now."""
        if followed.is_restored or self._documents is None:
            return
        if not self._is_prepared:
            await self._documents.prepare(SNAPSHOTS)
            self._is_prepared = True
        is_usable, snapshot = True, None
        try:
            if found := await self._documents.get(SNAPSHOTS, tenant):
                snapshot = await asyncio.to_thread(snapshot_from_fields, found.fields)
                is_usable = snapshot is not None
        except (StoreDamagedError, LookupError, TypeError, ValueError) as error:
            report_unreadable("ratings snapshot", tenant, error)
            is_usable = False
        if snapshot is not None:
            is_usable = await self._begin_with(tenant, followed, snapshot)
        if self._keeps and not is_usable:
            await self._documents.delete(SNAPSHOTS, tenant)
        followed.is_restored = True

    async def _begin_with(self, tenant: str, followed: _TenantRatings, snapshot: Snapshot) -> bool:
        """Begin with a snapshot. Return False if it does not fit the logs."""
        entry = await find_entry(self._log, _log_name(tenant), snapshot.sequence)
        if entry is None or mark_of(entry) != snapshot.mark:
            return False
        known: list[Correction] = []
        newer: list[Correction] = []

        def take(sequence: int, entry: bytes) -> None:
            read = known if sequence <= snapshot.correction_sequence else newer
            read.append(CORRECTIONS.validate_json(entry))

        last = await self._read_entries(followed, _correction_log_name(tenant), 0, take)
        snapshot.table.know_corrections(known)
        if last < snapshot.correction_sequence or snapshot.table.is_changed_by(newer):
            return False
        snapshot.table.know_corrections(newer)
        followed.table, followed.sequence, followed.correction_sequence = (
            snapshot.table,
            snapshot.sequence,
            last,
        )
        followed.feedback_sequence = 0  # no feedback is in a snapshot: what was read before is read again
        followed.saved_matches = len(snapshot.table.debates())
        followed.saved_corrections = snapshot.correction_sequence
        return True

    async def _save_if_due(self, tenant: str, followed: _TenantRatings) -> None:
        """Keep a snapshot if enough was counted since the last one. It only saves time, so that no failure of it counts."""
        matches = len(followed.table.debates())
        is_corrected = followed.saved_matches and followed.saved_corrections != followed.correction_sequence
        is_due = is_corrected or matches - followed.saved_matches >= _SNAPSHOT_EVERY
        if self._documents is None or not self._keeps or not is_due or matches > MAX_MATCHES:
            return
        try:
            entry = await find_entry(self._log, _log_name(tenant), followed.sequence)
            if entry is None:
                return
            snapshot = Snapshot(
                followed.table, followed.sequence, followed.correction_sequence, mark_of(entry)
            )
            fields = await asyncio.to_thread(snapshot_to_fields, snapshot)
            # Of two replicas, that of the one that read more stays.
            where = {"sequence": Below(followed.sequence + 1)}
            if not await self._documents.update(SNAPSHOTS, tenant, fields, where):
                await self._documents.insert(SNAPSHOTS, tenant, fields)
        except DuplicateError:
            pass
        except ValueError as error:
            # It is larger than a document may be: the next one is due as if it had been kept.
            _logger.warning("the snapshot of the ratings is too large and was not kept", error=str(error))
        except StorageError as error:
            _logger.warning("the snapshot of the ratings was not kept; a later one will be", error=str(error))
            return
        followed.saved_matches, followed.saved_corrections = matches, followed.correction_sequence

    async def _load(self, tenant: str, table: Table, debate_id: str) -> PastMatch | None:
        """Return the match of a debate, read from the log if need be; None if it has not been counted. The tenant's lock is held."""
        past = table.past_match(debate_id)
        if past is None and debate_id in table.debates():
            place = next(place for place, each in enumerate(table.debates()) if each == debate_id)
            await self._load_page(tenant, table, place // MATCHES_PER_PAGE)
            past = table.past_match(debate_id)
        return past

    async def _load_all(self, tenant: str, table: Table) -> None:
        for number in table.list_unloaded_pages():
            await self._load_page(tenant, table, number)

    async def _load_page(self, tenant: str, table: Table, number: int) -> None:
        ends = [each.sequence for each in table.pages[number + 1 : number + 2]]
        first, until = table.pages[number].sequence, ends[0] if ends else None
        table.load_page(number, await read_matches(self._log, _log_name(tenant), first, until))

    async def _catch_up_corrections(self, tenant: str, followed: _TenantRatings) -> None:
        read: list[Correction] = []

        def take(_: int, entry: bytes) -> None:
            read.append(CORRECTIONS.validate_json(entry))

        log, after = _correction_log_name(tenant), followed.correction_sequence
        last = await self._read_entries(followed, log, after, take)
        if followed.table.is_changed_by(read):
            await self._load_all(tenant, followed.table)
        followed.correction_sequence = last
        await _fold(followed, partial(followed.table.correct, read))

    async def _catch_up(self, tenant: str, followed: _TenantRatings) -> None:
        await self._restore(tenant, followed)

        def take(sequence: int, entry: bytes) -> None:
            followed.table.count(MATCHES.validate_json(entry), sequence)

        followed.sequence = await self._read_entries(followed, _log_name(tenant), followed.sequence, take)

    async def _catch_up_feedback(self, tenant: str, followed: _TenantRatings) -> None:
        def take(_: int, entry: bytes) -> None:
            followed.table.count_feedback(FEEDBACK.validate_json(entry))

        followed.feedback_sequence = await self._read_entries(
            followed, _feedback_log_name(tenant), followed.feedback_sequence, take
        )

    async def _read_entries(
        self, followed: _TenantRatings, log: str, after: int, take: Callable[[int, bytes], None]
    ) -> int:
        """Pass the entries of a log after a sequence to `take`, each with its own, and return the sequence of the last one."""
        while records := await self._log.read(log, after, _PAGE):
            await _fold(followed, partial(take_entries, log, records, after, take))
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
