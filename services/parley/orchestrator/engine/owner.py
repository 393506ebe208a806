"""The owner of one debate at the replica that claimed it: from the claim until the debate ends or rests."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from google.protobuf.message import DecodeError
from msgspec import Struct
from opentelemetry.trace import Status, StatusCode

from parley.orchestrator import metrics
from parley.orchestrator.engine.agent_steps import AgentCaller
from parley.orchestrator.engine.call_admission import Slot
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.execution import Execution, FollowUp, leaf_exceptions, run_follow_up
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.engine.inbox import Inbox, InboxEntry
from parley.orchestrator.engine.interventions import InterventionHandler
from parley.orchestrator.engine.running_code import name_running_code
from parley.orchestrator.engine.status_writer import StatusWriter, final_status
from parley.orchestrator.engine.stopped_calls import stop_calls
from parley.orchestrator.log.debate_record import (
    CANCELLED,
    COMPLETED,
    FAILED,
    PAUSED,
    PENDING,
    RUNNING,
    WAITING,
    DebateRecord,
)
from parley.orchestrator.log.envelope import Envelope, create_event
from parley.orchestrator.log.events import CorruptEventError
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.journal import ClaimLostError, Journal, Publish
from parley.orchestrator.log.reading import read_events
from parley.orchestrator.model.times import time_of, time_text
from parley.orchestrator.model.tokens import count_tokens
from parley.orchestrator.peers.agents import Agents
from parley.orchestrator.peers.services import Services
from parley.runtime.clock import Clock
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.logs import get_logger
from parley.runtime.telemetry import extract, open_span, tracer
from parley.storage.ports import DuplicateError, Log, StorageError, StoreUnavailableError
from parley.v1.debate_pb2 import DebateFailure, DebateLimits
from parley.v1.event_pb2 import (
    CheckpointExpired,
    Closed,
    Concluded,
    DebateCreated,
    DebateFailed,
    Paused,
    StoppedCall,
)

_logger = get_logger(__name__)
_tracer = tracer(__name__)


class OwnerDependencies(Struct, frozen=True):
    """The parts that an owner uses.

    Attributes:
        follow_up: What follows an answer, within `follow_up_limits`.
        publish: Gets the events of the owner once they are durable, for those who watch the debate here.
        end_publishing: Gets tenant and debate once no more events come from here.
        owner: The name of this replica in claims, new for every process.
        lease_heartbeat_seconds: How often the owner renews its lease.
    """

    log: Log
    index: DebateIndex
    inbox: Inbox
    agents: Agents
    services: Services
    formats: Formats
    follow_up: FollowUp
    follow_up_limits: DebateLimits
    clock: Clock
    publish: Publish
    end_publishing: Callable[[str, str], None]
    owner: str
    lease_heartbeat_seconds: float


class DebateOwner:
    """The owner of one debate. Create it, call `run`, and pass it interventions with `deliver`.

    Attributes:
        tenant: The tenant of the debate.
        document_bytes: Bytes of its documents, which it holds as long as it runs.
        accepted: Set once the first event is known to be durable.
        brief: Whether it makes no model call: the debate has ended, or only its interventions are handled.
        slot: The slot that it holds unless it is brief.
        refusal: Why the record of a new debate may not be written.
        unable_reason: Why this replica cannot continue what another one started; else empty.
        resumes_later: Whether it was released, and continues at any replica with a free slot.
        waits_for_person: Whether it was released, and waits for a person.
    """

    def __init__(
        self,
        record: DebateRecord,
        dependencies: OwnerDependencies,
        slot: Slot,
        entries: Sequence[InboxEntry],
        *,
        brief: bool,
        is_new: bool,
    ) -> None:
        """Prepare to own a debate. `entries` are its waiting interventions; if it is `brief`, only these are handled.

        If it `is_new`, neither its record nor its log are written: the claim takes the record along.
        """
        self.tenant = record.tenant
        self.document_bytes = record.document_bytes
        self.accepted = asyncio.Event()
        self.brief = brief or record.status in (COMPLETED, CANCELLED)
        self.slot = slot
        self.refusal: StorageError | None = None
        self.unable_reason = ""
        self.resumes_later = self.waits_for_person = False
        self._only_interventions = brief
        self._is_new = is_new
        self._record = record
        self._dependencies = dependencies
        self._first_entries = tuple(entries)
        self._interventions = InterventionHandler(dependencies.inbox, dependencies.agents)
        self._journal: Journal
        self._status_writer: StatusWriter
        self._debate: Debate
        self._format: Format
        self._execution: Execution

    def deliver(self, entry: InboxEntry) -> None:
        """Pass an intervention to the debate, unless it was passed before."""
        self._interventions.deliver(entry)

    async def run(self) -> None:
        """Claim the debate and run it until it ends, fails or rests. A new one of which there is another already does not run.

        Raises:
            ClaimLostError: another replica has claimed it.
            UnknownEventError: only a newer version knows an event of its log; it is not claimed.
            StorageError: the store is unavailable; nothing is lost.
        """
        try:
            created = await self._claim()
        except DuplicateError:  # another debate of the same request, of which whoever starts this one hears
            return
        if self._journal.recorded.closed:
            return
        parts, spec = self._dependencies, created.spec
        self._debate = Debate(
            created,
            self._journal,
            parts.agents,
            parts.services,
            parts.clock,
            self._status_writer.notify_status,
            self.slot,
        )
        self._format = parts.formats.get(spec.format)
        self._execution = Execution(
            self._debate, self._format, self._journal, parts.clock, self._status_writer.notify_status
        )
        self._interventions.attach(self._journal, self._debate, self._execution)
        carrier = {"traceparent": created.traceparent} if created.traceparent else {}
        with open_span(_tracer, f"invoke_workflow {spec.format}", context=extract(carrier)) as span:
            span.set_attribute("gen_ai.operation.name", "invoke_workflow")
            span.set_attribute("gen_ai.conversation.id", self._record.debate)
            span.set_attribute("parley.epoch", self._journal.epoch)
            with self._status_writer.measure_end():
                await self._run_with_lease()
            failed = self._journal.recorded.failure
            if failed is not None:
                description = f"{failed.failure.reason}: {failed.failure.message}"
                span.set_status(Status(StatusCode.ERROR, description))

    @property
    def has_progressed(self) -> bool:
        """Whether anything was recorded after the claim."""
        journal = getattr(self, "_journal", None)
        return journal is not None and 0 < journal.claimed_at < journal.sequence

    async def mark_failed(self, why: str) -> None:
        """Mark the debate as failed, since running it keeps ending in a fault. It may be resumed. An answer stays valid.

        If its log cannot be read, only its record changes.

        Raises:
            ClaimLostError: another replica has claimed it.
            UnknownEventError: only a newer version can continue it.
            StorageError: the store is unavailable.
        """
        record, parts = self._record, self._dependencies
        try:
            events = await read_events(parts.log, record.tenant, record.debate)
            opening = None if events else record.opening_event()
        except (
            CorruptEventError,
            DecodeError,
            ValueError,
        ):  # ValueError: the first event in the record is no base64
            failed = parts.index.plan_status(
                record,
                record.epoch,
                status=FAILED,
                is_open=False,
                owner=None,
                updated=time_text(parts.clock.now()),
                cost_micros=record.cost_micros,
            )
            await parts.index.write(failed)
            return
        self._load_log(events)
        recorded = self._journal.recorded
        if recorded.concluded is not None or recorded.failure is not None:
            return
        failure = DebateFailed(failure=DebateFailure(reason="NO_PROGRESS", message=why))
        first = [create_event("created", opening)] if opening else []
        await self._journal.claim(
            parts.owner,
            *first,
            code=name_running_code(),
            then=[create_event("failed", failure, recorded.attempt)],
        )
        await self._status_writer.write_rest(FAILED)

    async def release(self) -> None:
        """Release the debate after `run` was cancelled, so that another replica can continue at once."""
        if self.accepted.is_set():
            try:
                await self._journal.write_rest()  # a status must not be ahead of the log
                self._status_writer.record_end()
            finally:
                self._dependencies.end_publishing(self.tenant, self._record.debate)
            await self._status_writer.release()
            if self._journal.recorded.closed:  # it was stopped just before it said so to the gateway
                await self._debate.forget_answers()

    def _load_log(self, events: Sequence[Envelope]) -> None:
        """Create the journal and the status writer for these events."""
        record, parts = self._record, self._dependencies
        self._journal = Journal(parts.log, parts.clock, record.tenant, record.debate, events, parts.publish)
        for held in self._journal.recorded.documents.values():
            count_tokens(held)
        self._status_writer = StatusWriter(
            record, self._journal, parts.index, parts.inbox, parts.clock, parts.owner
        )

    async def _claim(self) -> DebateCreated:
        record, parts = self._record, self._dependencies
        events = [] if self._is_new else await read_events(parts.log, self.tenant, record.debate)
        size = sum(len(each.entry) for each in events)
        await in_thread_if_large(size, partial(self._load_log, events))
        opening = None if events else await in_thread_if_large([record.opening], record.opening_event)
        created = self._journal.recorded.created or opening
        if created is None:
            raise CorruptEventError(f"the log of {record.debate} does not begin with its creation")
        if self._journal.recorded.closed:
            # The earlier owner stopped between the last event and the record. Nothing follows `Closed`.
            await self._status_writer.write_claim()
            await self._status_writer.mark_interventions()
            await self._status_writer.write_closed()
            await AgentCaller(parts.agents, parts.clock, self._journal).forget_all()
            return created
        # What is new runs from now on; of any other debate, what its log and its interventions say decides.
        if opening is not None and not self._first_entries and not self._only_interventions:
            self._status_writer.claimed_status = RUNNING
        first = [create_event("created", opening)] if opening else []
        insert = parts.index.plan_insert(record) if self._is_new else None
        try:
            await self._journal.claim(parts.owner, *first, code=name_running_code(), insert=insert)
        except ClaimLostError:
            metrics.count_claim(taken=False)
            raise
        except StorageError as error:
            self.refusal = error if self._is_new else None
            raise
        metrics.count_claim(taken=True)
        self.accepted.set()
        assert self._journal.recorded.created is not None
        return self._journal.recorded.created

    async def _run_with_lease(self) -> None:
        """Run the debate, and beside it what writes the journal, renews the lease and confirms answers. A lost claim ends all of them.

        Raises:
            ClaimLostError: another replica has claimed it.
            StorageError: the store is unavailable.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(self._journal.run_writer()),
                    tasks.create_task(self._renew_lease()),
                    tasks.create_task(self._debate.confirm_recorded()),
                ]
                await self._work()
                for task in background:
                    task.cancel()
        except ExceptionGroup as group:
            for kind in (ClaimLostError, StorageError):
                for leaf in leaf_exceptions(group):
                    if isinstance(leaf, kind):
                        raise leaf from group
            raise

    async def _renew_lease(self) -> None:
        parts, heartbeat = self._dependencies, self._record.heartbeat + 1
        while True:
            await parts.clock.sleep(parts.lease_heartbeat_seconds)
            heartbeat += 1
            try:
                is_claimed = await self._status_writer.renew_lease(heartbeat)
            except StoreUnavailableError as unavailable:
                # The log guarantees safety; a missed heartbeat only makes a takeover more likely.
                _logger.warning("store unavailable; the lease is renewed later", error=str(unavailable))
                continue
            if not is_claimed:
                raise ClaimLostError(f"debate {self._record.debate} was claimed by another replica")

    async def _work(self) -> None:
        recorded = self._journal.recorded
        await self._interventions.process_at_rest(await self._list_first_entries())
        goes_on = recorded.concluded is None and recorded.failure is None and not recorded.pausing
        if goes_on and self._only_interventions:
            await self._postpone()
        elif goes_on:
            status = WAITING if recorded.wait or recorded.open_checkpoints else RUNNING
            await self._status_writer.write_status(status)
            await self._execute()
            await self._journal.wait_until_written()  # what was being recorded when the format was stopped
        if recorded.concluded is not None:
            await self._close(recorded.concluded)
        elif recorded.failure is not None:
            await self._status_writer.write_rest(FAILED)
        elif recorded.pausing:
            await self._pause()
        elif (
            self._execution.unable_reason
            or self.slot.revoked.is_set()
            or self._debate.checkpoints.unattended.is_set()
        ):
            await self._hand_over()

    async def _list_first_entries(self) -> Sequence[InboxEntry]:
        """Return the interventions to handle before anything else.

        A debate that rests has an owner because of one. It may have arrived after the runner read the inbox.
        """
        recorded = self._journal.recorded
        if self._first_entries or not (recorded.failure or recorded.pausing):
            return self._first_entries
        return await self._dependencies.inbox.list_waiting_for(self._record.key)

    async def _hand_over(self) -> None:
        """Release the debate: to any replica that can continue it, or without an owner until a person acts."""
        # Pending appends come first: they would take the place of the next owner's claim.
        await self._journal.wait_until_written()
        self.unable_reason = self._execution.unable_reason
        if self._debate.checkpoints.unattended.is_set() and self._journal.recorded.open_checkpoints:
            await self._wait_for_person()
        else:
            self.resumes_later = not self.unable_reason
            await self._status_writer.request_owner(RUNNING)

    async def _postpone(self) -> None:
        """Release a debate that was not run: no slot was free, or it only waits for a person."""
        recorded, status = self._journal.recorded, self._record.status
        overdue = [
            key
            for key, checkpoint in recorded.open_checkpoints.items()
            if time_of(checkpoint.until) <= self._dependencies.clock.now()
        ]
        if overdue:
            await self._journal.append(create_event(overdue[0], CheckpointExpired(), recorded.attempt))
            await self._pause()
        elif recorded.open_checkpoints:
            await self._wait_for_person()
        else:
            self.resumes_later = True
            status = RUNNING if status == WAITING and recorded.wait is None else status
            waits = status in (PENDING, RUNNING, WAITING)
            await self._status_writer.request_owner(status if waits else PENDING)

    async def _wait_for_person(self) -> None:
        """Let the debate wait without an owner, until a person acts or the checkpoint is due."""
        self.waits_for_person = True
        until = min(time_of(each.until) for each in self._journal.recorded.open_checkpoints.values())
        await self._status_writer.write_rest(WAITING, until)

    async def _execute(self) -> None:
        """Run the format and handle interventions, until one of them ends or stops the debate.

        The format is also stopped if it needs a slot and none is free, or if it waits long for a person.
        """
        work = asyncio.create_task(self._execution.run())
        steering = asyncio.create_task(self._interventions.process_all(work))
        revoked = asyncio.create_task(self.slot.revoked.wait())
        unattended = asyncio.create_task(self._debate.checkpoints.unattended.wait())
        try:
            await asyncio.wait({work, steering, revoked, unattended}, return_when=asyncio.FIRST_COMPLETED)
            if revoked.done() or unattended.done():
                work.cancel()
                await asyncio.wait({work})
            if work.done():
                # An intervention that is being recorded, or that stopped the format, is recorded before the run ends.
                self._interventions.notify_work_ended()
                await asyncio.wait({steering})
        finally:
            for task in (work, steering, revoked, unattended):
                task.cancel()
            await asyncio.gather(work, steering, revoked, unattended, return_exceptions=True)
        for task in (work, steering):
            if not task.cancelled():
                task.result()

    async def _pause(self) -> None:
        recorded = self._journal.recorded
        if not recorded.paused:
            # Counted in the record that ends the run: an owner that takes over before it counts them, a later one does not.
            stopped = await stop_calls(self._journal, self._dependencies.agents) if recorded.stopping else ()
            await self._journal.append(create_event("paused", Paused(stopped=stopped), recorded.attempt))
        await self._status_writer.write_rest(PAUSED)

    async def _close(self, concluded: Concluded) -> None:
        self.brief = True
        self.slot.release()
        stopped: Sequence[StoppedCall] = ()
        if not concluded.HasField("outcome"):
            stopped = await stop_calls(self._journal, self._dependencies.agents, for_good=True)
        if not self._journal.recorded.closed:
            # The answer exists; what follows may wait for services that are unavailable.
            await self._status_writer.write_status(final_status(concluded))
            self._debate.gate.open()  # a pause that came too late has no effect
            if concluded.HasField("outcome") and self._format.is_recorded:
                parts = self._dependencies
                await run_follow_up(
                    self._debate, self._journal, concluded.outcome, parts.follow_up, parts.follow_up_limits
                )
            await self._status_writer.mark_interventions()
            await self._journal.append(create_event("closed", Closed(stopped=stopped)))
        await self._status_writer.write_closed()
        await self._debate.forget_answers()
