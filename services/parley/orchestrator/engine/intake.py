"""Accepts debates and interventions: makes them durable before the caller gets its answer."""

import asyncio
from functools import partial

import grpc
from msgspec import Struct

from parley.orchestrator.engine.inbox import (
    CHECKPOINT_CLOSED,
    ENDED,
    GUIDANCE_FULL,
    LAST_AGENT,
    RECORDED,
    REFUSED,
    UNKNOWN_AGENT,
    UNKNOWN_QUESTION,
    Inbox,
    InboxEntry,
)
from parley.orchestrator.engine.interventions import MAX_GUIDANCE_BYTES
from parley.orchestrator.engine.runner import Runner
from parley.orchestrator.log.debate_record import (
    CANCELLED,
    COMPLETED,
    PENDING,
    DebateRecord,
    opening_text,
    record_key,
)
from parley.orchestrator.log.deletions import DeletionStore
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.log.reading import log_name, read_events
from parley.orchestrator.model.ids import new_debate_id
from parley.orchestrator.model.labels import label_texts
from parley.orchestrator.model.short_text import to_listed_question
from parley.runtime.backoff import Backoff
from parley.runtime.clock import Clock
from parley.runtime.errors import (
    DRAINING,
    FieldViolation,
    ParleyError,
    failed_precondition,
    invalid_argument,
    not_found,
    unavailable,
)
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.telemetry import inject
from parley.storage.ports import DuplicateError, Log
from parley.v1.event_pb2 import DebateCreated, Intervened

_MAX_OPENING_CHARACTERS = 14_000_000
"""The largest document of every store, less the other fields of a record."""
_BYTES_A_CHARACTER = 4
"""At most, in UTF-8."""
_LARGE_OPENING = 256 * 1024
"""Characters. A record is rewritten at each change and read by a dozen indexes: one of 5 MB blocks all other writes of SQLite for
0.4 s. So a larger first event is only in the log, which is then written before the record."""
_POLL_BACKOFF = Backoff(first=0.01, maximum=0.5)


class Intake(Struct, frozen=True):
    """Accepts debates and interventions."""

    log: Log
    index: DebateIndex
    inbox: Inbox
    deletions: DeletionStore
    runner: Runner
    clock: Clock

    async def create_debate(
        self,
        tenant: str,
        first: DebateCreated,
        request_digest: str,
        subject: str | None = None,
        size: int = 0,
        found_characters: int = 0,
    ) -> tuple[str, bool]:
        """Accept a debate and make it durable. Return its id, and whether the same request had created it before.

        `first` is its first event, which this completes. `subject` is the id of the debate that it is about, if any.
        `size` is about how many bytes it has. `found_characters` is how many research may find for it at most, which count as
        bytes of its documents.

        Raises:
            ParleyError: the request id was already used for a different debate, the debate is too large to be stored, or
                the store is unavailable.
        """
        now = self.clock.now()
        debate = new_debate_id(now)
        created = now.isoformat(timespec="microseconds")
        first.traceparent = inject().get("traceparent", "")
        opening, document_bytes = await in_thread_if_large(size, partial(_encode, first))
        document_bytes += _BYTES_A_CHARACTER * found_characters
        if not opening:
            # The note makes the log known if this process ends before the record is written.
            await self.deletions.record_log_start(tenant, debate, created)
            await Journal(self.log, self.clock, tenant, debate).write_first_event(first, size)
        owner = self.runner.owner if self.runner.has_slot(tenant, document_bytes) else None
        record = DebateRecord(
            tenant=tenant,
            debate=debate,
            request_id=first.request_id,
            request_digest=request_digest,
            format=first.spec.format,
            status=PENDING,
            open=True,
            owner=owner,
            epoch=0,
            heartbeat=0,
            created=f"{created}/{debate}",
            updated=created,
            question=to_listed_question(first.spec.question),
            opening=opening,
            subject=subject,
            alive=created if owner else None,
            labels=label_texts(first.spec.labels),
            document_bytes=document_bytes,
        )
        if record.opening and owner is not None and await self._start_new(record):
            return debate, False
        earlier = await self._accept(record)
        return (debate, False) if earlier is None else (earlier, True)

    async def _accept(self, record: DebateRecord) -> str | None:
        """Write a record and let its debate run here or elsewhere. Return the id of an earlier debate of the same request instead, if there is one."""
        try:
            earlier = await self._insert(record)
        except ParleyError:
            await self._discard_log(record)
            raise
        if earlier is not None:
            await self._discard_log(record)
            return earlier
        if record.owner is None or not await self.runner.start_debate(record):
            # No slot, or another claim was faster: the same request may arrive twice at once.
            if record.opening:
                await self._write_first_event(record)
            self.runner.run_soon(record)
        if not record.opening:
            await self.deletions.remove(record.key)
        return None

    async def find_earlier(self, tenant: str, request_id: str, request_digest: str) -> str | None:
        """Return the id of the debate that the same request created, or None. The debate is durable.

        Raises:
            ParleyError: the request id was already used for a different debate.
        """
        record = await self.index.find_by_request(tenant, request_id)
        return None if record is None else await self._check_same_request(record, request_digest)

    async def intervene(self, tenant: str, debate: str, intervened: Intervened) -> int:
        """Send an intervention to a debate. Return the sequence of the event that records it.

        Raises:
            ParleyError: the debate does not exist or ended first, the checkpoint is not open, it answers an unknown question,
                it mutes an agent that must not be muted, or the request id was already used for a different intervention.
        """
        key, now = record_key(tenant, debate), self.clock.now().isoformat(timespec="microseconds")
        entry = InboxEntry(key, f"{now}/{key}/{intervened.request_id}", intervened)
        has_ended = await self._has_ended(tenant, debate)
        # Checked after the debate: the same intervention may have reached another replica and ended the debate.
        if has_ended and await self.inbox.get(entry.key) is None:
            raise failed_precondition("DEBATE_ENDED", f"debate {debate} has ended")
        if not await self.inbox.put(entry):
            request_id = intervened.request_id
            message = f"request id {request_id!r} was already used for a different intervention"
            raise _reuse_error("intervention", request_id, message)
        await self.index.reopen(tenant, debate)
        self.runner.wake()
        return await self._wait_until_recorded(tenant, debate, entry.key)

    async def _start_new(self, record: DebateRecord) -> bool:
        """Start a debate whose record is not written yet. Return False if it, or an earlier one of the same request, may be there already."""
        try:
            return await self.runner.start_debate(record, is_new=True)
        except DuplicateError:
            return False

    async def _insert(self, record: DebateRecord) -> str | None:
        """Add a record. Return the id of the debate that the same request has created meanwhile, or None."""
        while True:
            try:
                await self.index.insert(record)
            except DuplicateError:
                earlier = await self.find_earlier(record.tenant, record.request_id, record.request_digest)
                if earlier is not None:  # else that debate was deleted just now, so try again
                    return None if earlier == record.debate else earlier
            else:
                return None

    async def _discard_log(self, record: DebateRecord) -> None:
        """Delete the log of a debate that is not created, if it was written before its record."""
        if not record.opening:
            await self.log.delete(log_name(record.tenant, record.debate))
            await self.deletions.remove(record.key)

    async def _check_same_request(self, record: DebateRecord, request_digest: str) -> str:
        if record.request_digest != request_digest:
            message = f"request id {record.request_id!r} was already used for a different debate"
            raise _reuse_error("debate", record.request_id, message)
        if record.opening:
            await self._write_first_event(record)
        return record.debate

    async def _write_first_event(self, record: DebateRecord) -> None:
        """Write the first event of a debate without running it here."""
        journal = Journal(self.log, self.clock, record.tenant, record.debate)
        opening = await in_thread_if_large([record.opening], record.opening_event)
        assert opening is not None
        await journal.write_first_event(opening)
        await self.index.record_first_event(record)
        self.runner.wake()

    async def _has_ended(self, tenant: str, debate: str) -> bool:
        record = await self.index.get(tenant, debate)
        if record is None:
            raise not_found("debate", debate)
        return record.status in (COMPLETED, CANCELLED)

    async def _wait_until_recorded(self, tenant: str, debate: str, key: str) -> int:
        for pause in _POLL_BACKOFF.pauses():
            if self.runner.is_draining:
                message = "this server is stopping; send the same intervention again"
                raise unavailable(DRAINING, message, retry_after=0.1)
            entry = await self.inbox.get(key)
            if entry is not None and entry.state == RECORDED:
                return entry.sequence
            if entry is not None and entry.state == REFUSED:
                raise _refusal_error(debate, entry)
            if entry is None or entry.state == ENDED:
                message = f"debate {debate} ended before the intervention was recorded"
                raise failed_precondition("DEBATE_ENDED", message)
            if await self._has_ended(tenant, debate):
                await self._resolve_after_end(tenant, debate, entry)
                continue
            await asyncio.sleep(pause)
        raise AssertionError

    async def _resolve_after_end(self, tenant: str, debate: str, entry: InboxEntry) -> None:
        """Mark an intervention on an ended debate: as recorded if the log has it, else as too late."""
        for event in await read_events(self.log, tenant, debate):
            payload = event.payload
            if isinstance(payload, Intervened) and payload.request_id == entry.intervened.request_id:
                await self.inbox.mark_recorded(entry.key, event.sequence)
                return
        await self.inbox.mark_ended(entry.key)


def _encode(first: DebateCreated) -> tuple[str, int]:
    """Return the first event as its record holds it, empty if it is too large for that, and the bytes of its documents.

    Raises:
        ParleyError: it is too large to be stored.
    """
    characters = 4 * -(-first.ByteSize() // 3)
    if characters > _MAX_OPENING_CHARACTERS:
        message = f"takes {characters} bytes to store, more than {_MAX_OPENING_CHARACTERS}"
        raise invalid_argument([FieldViolation("spec", message)])
    document_bytes = sum(len(each.text.encode()) for each in first.spec.context)
    return opening_text(first) if characters <= _LARGE_OPENING else "", document_bytes


def _refusal_error(debate: str, entry: InboxEntry) -> ParleyError:
    if entry.refusal == UNKNOWN_QUESTION:
        return invalid_argument(_unknown_question_violations(entry))
    if entry.refusal == UNKNOWN_AGENT:
        message = f"unknown agent {entry.agent[:80]!r}; agents of this debate: {', '.join(entry.known_ids)}"
        return invalid_argument([FieldViolation(f"intervention.{entry.act}.agent_id", message)])
    if entry.refusal == LAST_AGENT:
        message = (
            f"{entry.agent} is the last agent of debate {debate} that is not muted; nothing was recorded"
        )
        return failed_precondition(entry.refusal, message)
    if entry.refusal == GUIDANCE_FULL:
        message = f"the guidance in debate {debate} would have more than {MAX_GUIDANCE_BYTES:,} bytes; nothing was recorded: say it shorter"
        return failed_precondition(entry.refusal, message)
    if entry.refusal == CHECKPOINT_CLOSED:
        message = f"checkpoint {entry.checkpoint} of debate {debate} is not open; nothing was recorded"
        return failed_precondition(entry.refusal, message, {"checkpoint": entry.checkpoint})
    act = entry.act.removesuffix("_debate")
    message = f"debate {debate} has no open checkpoint that {act} closes; nothing was recorded"
    return failed_precondition(entry.refusal, message)


def _unknown_question_violations(entry: InboxEntry) -> list[FieldViolation]:
    known = f"questions: {', '.join(entry.known_ids)}" if entry.known_ids else "it has no questions with ids"
    return [
        FieldViolation(
            f"intervention.answer.answers[{place}].question_id",
            f"{each.question_id!r} is no question of the checkpoint; {known}",
        )
        for place, each in enumerate(entry.intervened.intervention.answer.answers)
        if each.question_id not in entry.known_ids
    ]


def _reuse_error(kind: str, request_id: str, message: str) -> ParleyError:
    return ParleyError(
        grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED", message, resource=(kind, request_id)
    )
