"""One debate in the hands of the replica that claimed it: from the claim to its end, or to where it rests."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from opentelemetry.trace import Status, StatusCode

from parley.orchestrator import metrics
from parley.orchestrator.engine.call_admission import Slot
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.execution import Execution, FollowUp, leaf_exceptions, run_follow_up
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.engine.inbox import Inbox, InboxEntry
from parley.orchestrator.engine.interventions import InterventionHandler, stop_calls
from parley.orchestrator.engine.status_writer import StatusWriter, final_status, time_text
from parley.orchestrator.log.envelope import Draft, Envelope
from parley.orchestrator.log.events import CorruptEventError, spec_of
from parley.orchestrator.log.index import (
    CANCELLED,
    COMPLETED,
    FAILED,
    PAUSED,
    PENDING,
    RUNNING,
    WAITING,
    DebateIndex,
    DebateRecord,
)
from parley.orchestrator.log.journal import ClaimLostError, Journal, read_events
from parley.orchestrator.model.spec import Limits
from parley.orchestrator.model.times import time_of
from parley.orchestrator.peers.agents import Agents
from parley.orchestrator.peers.services import Services
from parley.runtime.clock import Clock
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.logs import get_logger
from parley.runtime.telemetry import extract, tracer
from parley.storage.ports import Log, StorageError, StoreUnavailableError
from parley.v1.debate_pb2 import DebateFailure
from parley.v1.event_pb2 import (
    CheckpointExpired,
    Closed,
    Concluded,
    DebateCreated,
    DebateFailed,
    Paused,
    StoppedCall,
)

__all__ = ["DebateOwner", "OwnerDependencies"]

_logger = get_logger(__name__)
_tracer = tracer(__name__)


@dataclass(frozen=True, slots=True)
class OwnerDependencies:
    """What an owner works with.

    Attributes:
        follow_up: What is done after an answer, within `follow_up_limits`.
        owner: The name that this replica claims under, new for every process.
        lease_heartbeat_seconds: How often the owner shows that it lives.
    """

    log: Log
    index: DebateIndex
    inbox: Inbox
    agents: Agents
    services: Services
    formats: Formats
    follow_up: FollowUp
    follow_up_limits: Limits
    clock: Clock
    owner: str
    lease_heartbeat_seconds: float


class DebateOwner:
    """One debate, owned. Make it, `run` it, hand it interventions.

    Attributes:
        tenant: Whose debate it is.
        accepted: Set once the first event is known to be durable.
        brief: Whether it costs no model call: the debate has ended, or nothing but its interventions is taken up.
        slot: What it takes of its replica while it is not brief.
        unable: Why it was given up, where this replica cannot go on with what another one began; else empty.
        goes_on: Whether it was given up, and goes on wherever there is a slot for it.
        waits: Whether it was given up, and waits for a person.
    """

    def __init__(
        self,
        record: DebateRecord,
        dependencies: OwnerDependencies,
        slot: Slot,
        entries: Sequence[InboxEntry] = (),
        *,
        brief: bool = False,
    ) -> None:
        """Prepare to own a debate; `entries` wait for it now, and are all there is to do if it is `brief`."""
        self.tenant = record.tenant
        self.accepted = asyncio.Event()
        self.brief = brief or record.status in (COMPLETED, CANCELLED)
        self.slot = slot
        self.unable_reason = ""
        self.resumes_later = self.waits_for_person = False
        self._only_interventions = brief
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
        """Hand over an intervention; one that was handed over already is passed over."""
        self._interventions.deliver(entry)

    async def run(self) -> None:
        """Claim the debate and run it until it ends, fails or rests.

        Raises:
            ClaimLostError: another replica has it.
            UnknownEventError: its log holds what only a newer version knows; it is not claimed.
            StorageError: the store could not be used; nothing is lost.
        """
        created = await self._claim()
        if self._journal.recorded.closed:
            return
        needs, spec = self._dependencies, spec_of(created)
        self._debate = Debate(
            spec,
            self._journal,
            needs.agents,
            needs.services,
            needs.clock,
            self._status_writer.notify_status,
            self.slot,
        )
        self._format = needs.formats.get(spec.format)
        self._execution = Execution(
            self._debate, self._format, self._journal, needs.clock, self._status_writer.notify_status
        )
        self._interventions.attach(self._journal, self._debate, self._execution)
        carrier = {"traceparent": created.traceparent} if created.traceparent else {}
        with _tracer.start_as_current_span(
            f"invoke_workflow {spec.format}", context=extract(carrier)
        ) as span:
            span.set_attribute("gen_ai.operation.name", "invoke_workflow")
            span.set_attribute("gen_ai.conversation.id", self._record.debate)
            span.set_attribute("parley.epoch", self._journal.epoch)
            with self._measure_debate(spec.format):
                await self._run_with_lease()
            failed = self._journal.recorded.failure
            if failed is not None:
                description = f"{failed.failure.reason}: {failed.failure.message}"
                span.set_status(Status(StatusCode.ERROR, description))

    @contextmanager
    def _measure_debate(self, debate_format: str) -> Iterator[None]:
        """Measure the debate if it ends in the block."""
        recorded, record = self._journal.recorded, self._record
        before, meter = (recorded.concluded, recorded.failure), recorded.meter
        with metrics.count_running():
            try:
                yield
            finally:
                concluded, failure = recorded.concluded, recorded.failure
                if (concluded, failure) != before and (concluded or failure):
                    outcome = FAILED if concluded is None else final_status(concluded)
                    metrics.record_debate_end(
                        debate_format,
                        outcome.lower(),
                        (self._dependencies.clock.now() - record.accepted_at).total_seconds(),
                        tenant=record.tenant,
                        tokens=meter.tokens,
                        cost_micros=meter.cost_micros,
                    )

    @property
    def has_progressed(self) -> bool:
        """Whether anything was recorded after the claim."""
        journal = getattr(self, "_journal", None)
        return journal is not None and 0 < journal.claimed_at < journal.sequence

    async def mark_failed(self, why: str) -> None:
        """Mark the debate as failed, since work on it keeps ending in a fault; it may be resumed. An answer stands.

        Where its log cannot be read, only its record tells.

        Raises:
            ClaimLostError: another replica has it.
            UnknownEventError: only a newer version can go on with it.
            StorageError: the store could not be used.
        """
        record, needs = self._record, self._dependencies
        try:
            events = await read_events(needs.log, record.tenant, record.debate)
            opening = None if events else record.opening_event()
        except (CorruptEventError, DecodeError, ValueError):  # ValueError: an opening that is no base64
            updated = time_text(needs.clock.now())
            await needs.index.update_status(
                record, record.epoch, status=FAILED, is_open=False, owner=None, updated=updated
            )
            return
        self._load_log(events)
        recorded = self._journal.recorded
        if recorded.concluded is not None or recorded.failure is not None:
            return
        failure = DebateFailed(failure=DebateFailure(reason="NO_PROGRESS", message=why))
        first = [Draft("created", opening)] if opening else []
        await self._journal.claim(needs.owner, *first, then=[Draft("failed", failure, recorded.attempt)])
        await self._status_writer.write_claim()
        await self._status_writer.write_rest(FAILED)

    async def release(self) -> None:
        """Give the debate up after `run` was cancelled, so that another replica can go on at once."""
        if self.accepted.is_set():
            await self._status_writer.release()

    def _load_log(self, events: Sequence[Envelope]) -> None:
        """Stand on what the log holds."""
        record, needs = self._record, self._dependencies
        self._journal = Journal(needs.log, needs.clock, record.tenant, record.debate, events)
        self._status_writer = StatusWriter(
            record, self._journal, needs.index, needs.inbox, needs.clock, needs.owner
        )

    async def _claim(self) -> DebateCreated:
        record, needs = self._record, self._dependencies
        events = await read_events(needs.log, record.tenant, record.debate)
        self._load_log(events)
        opening = None if events else await in_thread_if_large([record.opening], record.opening_event)
        created = self._journal.recorded.created or opening
        if created is None:
            raise CorruptEventError(f"the log of {record.debate} does not begin with its creation")
        if self._journal.recorded.closed:
            # The owner before stopped between its last event and its record; nothing comes after `Closed`.
            await self._status_writer.write_claim()
            await self._status_writer.write_closed()
            return created
        try:
            await self._journal.claim(needs.owner, *([Draft("created", opening)] if opening else []))
        except ClaimLostError:
            metrics.count_claim(taken=False)
            raise
        metrics.count_claim(taken=True)
        self.accepted.set()
        await self._status_writer.write_claim()
        return created

    async def _run_with_lease(self) -> None:
        """Work while the journal is written and the heartbeat goes on; either ends the work when the claim is lost.

        Raises:
            ClaimLostError: it is.
            StorageError: the store could not be used.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                beside = [
                    tasks.create_task(self._journal.run_writer()),
                    tasks.create_task(self._renew_lease()),
                ]
                await self._work()
                for task in beside:
                    task.cancel()
        except ExceptionGroup as group:
            for told in (ClaimLostError, StorageError):
                for leaf in leaf_exceptions(group):
                    if isinstance(leaf, told):
                        raise leaf from group
            raise

    async def _renew_lease(self) -> None:
        needs, heartbeat = self._dependencies, self._record.heartbeat + 1
        while True:
            await needs.clock.sleep(needs.lease_heartbeat_seconds)
            heartbeat += 1
            try:
                lives = await self._status_writer.renew_lease(heartbeat)
            except StoreUnavailableError as away:
                # Safety is the log's doing; a missed heartbeat only brings a takeover nearer.
                _logger.warning("store away; the next heartbeat comes soon", error=str(away))
                continue
            if not lives:
                raise ClaimLostError(f"debate {self._record.debate} was claimed by another replica")

    async def _work(self) -> None:
        recorded = self._journal.recorded
        await self._interventions.process_at_rest(self._first_entries)
        goes_on = recorded.concluded is None and recorded.failure is None and not recorded.pausing
        if goes_on and self._only_interventions:
            await self._postpone()
        elif goes_on:
            status = WAITING if recorded.wait or recorded.open_checkpoints else RUNNING
            await self._status_writer.write_status(status)
            await self._execute()
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

    async def _hand_over(self) -> None:
        """Let whoever has a slot and knows how go on, in turn with others; or nobody, until a person has come."""
        # What is on its way to the log comes first: it would stand where the next owner writes its claim.
        await self._journal.wait_until_written()
        self.unable_reason = self._execution.unable_reason
        if self._debate.checkpoints.unattended.is_set() and self._journal.recorded.open_checkpoints:
            await self._wait_for_person()
        else:
            self.resumes_later = not self.unable_reason
            await self._status_writer.request_owner(RUNNING)

    async def _postpone(self) -> None:
        """Leave what was not run, since no slot was free or nothing but a person is waited for."""
        recorded, status = self._journal.recorded, self._record.status
        overdue = [
            key
            for key, checkpoint in recorded.open_checkpoints.items()
            if time_of(checkpoint.until) <= self._dependencies.clock.now()
        ]
        if overdue:
            await self._journal.append(Draft(overdue[0], CheckpointExpired(), recorded.attempt))
            await self._pause()
        elif recorded.open_checkpoints:
            await self._wait_for_person()
        else:
            self.resumes_later = True
            status = RUNNING if status == WAITING and recorded.wait is None else status
            waits = status in (PENDING, RUNNING, WAITING)
            await self._status_writer.request_owner(status if waits else PENDING)

    async def _wait_for_person(self) -> None:
        """Let the debate wait without an owner, until somebody comes or the time for that is over."""
        self.waits_for_person = True
        until = min(time_of(each.until) for each in self._journal.recorded.open_checkpoints.values())
        await self._status_writer.write_rest(WAITING, until)

    async def _execute(self) -> None:
        """Run the format and take up interventions, until one of both ends the debate or brings it to rest.

        A format that lacks a slot is stopped too, and one that waits for a person who does not come at once.
        """
        work = asyncio.create_task(self._execution.run())
        steering = asyncio.create_task(self._interventions.process_all(work))
        lacking = asyncio.create_task(self.slot.revoked.wait())
        alone = asyncio.create_task(self._debate.checkpoints.unattended.wait())
        try:
            await asyncio.wait({work, steering, lacking, alone}, return_when=asyncio.FIRST_COMPLETED)
            if lacking.done() or alone.done():
                work.cancel()
                await asyncio.wait({work})
            if work.done():
                # One that is being recorded now, or that stopped the format, is recorded before the run is left.
                self._interventions.notify_work_ended()
                await asyncio.wait({steering})
        finally:
            for task in (work, steering, lacking, alone):
                task.cancel()
            await asyncio.gather(work, steering, lacking, alone, return_exceptions=True)
        for task in (work, steering):
            if not task.cancelled():
                task.result()

    async def _pause(self) -> None:
        recorded = self._journal.recorded
        if not recorded.paused:
            # Counted in the record that brings it to rest, so that whoever takes it over before that counts them, and nobody after.
            stopped = await stop_calls(self._journal, self._dependencies.agents) if recorded.stopping else ()
            await self._journal.append(Draft("paused", Paused(stopped=stopped), recorded.attempt))
        await self._status_writer.write_rest(PAUSED)

    async def _close(self, concluded: Concluded) -> None:
        self.brief = True
        self.slot.release()
        stopped: Sequence[StoppedCall] = ()
        if not concluded.HasField("outcome"):
            stopped = await stop_calls(self._journal, self._dependencies.agents)
        if not self._journal.recorded.closed:
            # The answer is there; what follows may wait for services that are away.
            await self._status_writer.write_status(final_status(concluded))
            self._debate.gate.open()  # a pause that came too late is of no account
            if concluded.HasField("outcome") and self._format.is_recorded:
                needs = self._dependencies
                await run_follow_up(
                    self._debate, self._journal, concluded.outcome, needs.follow_up, needs.follow_up_limits
                )
            await self._journal.append(Draft("closed", Closed(stopped=stopped)))
        await self._status_writer.write_closed()
