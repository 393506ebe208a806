"""Handles the interventions on one debate: records each once, with its effects, and writes the result to the inbox."""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from parley.orchestrator.engine.checkpoints import ACTS_FOR_CHECKPOINT, CLOSING_ACTS
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.execution import Execution
from parley.orchestrator.engine.inbox import (
    CHECKPOINT_CLOSED,
    GUIDANCE_FULL,
    LAST_AGENT,
    NO_CHECKPOINT,
    UNKNOWN_AGENT,
    UNKNOWN_QUESTION,
    Inbox,
    InboxEntry,
)
from parley.orchestrator.engine.stopped_calls import stop_calls
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.peers.agents import Agents
from parley.v1.event_pb2 import CheckpointClosed, Concluded, Event, Resumed

MAX_GUIDANCE_BYTES: Final = 32 * 1024
"""Of all guidance in a debate: every later prompt holds it, next to the work of the agents."""


class _NoCallsInFlight(Struct, frozen=True):
    """The last call that was in flight has ended."""


class InterventionHandler:
    """The interventions on one debate, as its owner handles them."""

    def __init__(self, inbox: Inbox, agents: Agents) -> None:
        """Start with an empty queue. Call `attach` before interventions are handled."""
        self._inbox = inbox
        self._agents = agents
        self._queue: asyncio.Queue[InboxEntry | _NoCallsInFlight] = asyncio.Queue()
        self._delivered_keys: set[str] = set()
        self._journal: Journal
        self._debate: Debate
        self._execution: Execution

    def attach(self, journal: Journal, debate: Debate, execution: Execution) -> None:
        """Set the claimed debate."""
        self._journal = journal
        self._debate = debate
        self._execution = execution

    def deliver(self, entry: InboxEntry) -> None:
        """Add an intervention to the queue, unless it was added before."""
        if entry.key not in self._delivered_keys:
            self._delivered_keys.add(entry.key)
            self._queue.put_nowait(entry)

    def notify_work_ended(self) -> None:
        """Notify `process_all` that the format has stopped, so that it returns."""
        self._queue.put_nowait(_NoCallsInFlight())

    async def process_all(self, work: asyncio.Task[None]) -> None:
        """Handle interventions until one ends the run. Those that arrive later stay in the inbox."""
        async with asyncio.TaskGroup() as waits:
            while True:
                entry = await self._queue.get()
                if work.done():
                    return
                if not self._execution.is_over and await self._process(entry, work, waits):
                    return

    async def process_at_rest(self, entries: Sequence[InboxEntry]) -> None:
        """Handle interventions while no format runs."""
        for entry in entries:
            self._delivered_keys.add(entry.key)
            await self._process_one_at_rest(entry)

    async def _process(
        self, entry: InboxEntry | _NoCallsInFlight, work: asyncio.Task[None], waits: asyncio.TaskGroup
    ) -> bool:
        """Handle an intervention while the format runs. Return whether it ends the run."""
        recorded = self._journal.recorded
        if isinstance(entry, _NoCallsInFlight):
            if rests := recorded.pausing and self._debate.gate.is_empty:
                await self._stop(work)
            return rests
        if self._is_recorded(entry):
            await self._record(entry)
            return False
        match entry.act:
            case "cancel":
                await self._stop(work)
                await self._record(entry, create_event("concluded", Concluded()))
                return True
            case "pause" if entry.intervened.intervention.pause.stop_calls:
                await self._stop(work)
                await self._record(entry)  # the owner stops its calls before the debate rests
                return True
            case "pause":
                self._debate.gate.close()
                await self._record(entry)
                waits.create_task(self._notify_when_calls_end())
            case "resume" if recorded.pausing:
                await self._record(entry, self._create_resumed_event())
                self._debate.gate.open()
            case "mute" | "unmute":
                await self._record_or_refuse(entry)
            case _:
                await self._close_checkpoint_or_record(entry)
        return False

    async def _process_one_at_rest(self, entry: InboxEntry) -> None:
        recorded = self._journal.recorded
        if self._is_recorded(entry):
            await self._record(entry)
            return
        if recorded.concluded is not None:
            return
        match entry.act:
            case "cancel":
                await self._record(entry, create_event("concluded", Concluded()))
            case "resume" if recorded.failure is not None or recorded.pausing:
                await self._record(entry, self._create_resumed_event())
            case "pause" if entry.intervened.intervention.pause.stop_calls:
                await self._record(entry)
                await stop_calls(self._journal, self._agents)
            case "mute" | "unmute":
                await self._record_or_refuse(entry)
            case _:
                await self._close_checkpoint_or_record(entry)

    async def _record_or_refuse(self, entry: InboxEntry) -> None:
        """Record a mute or unmute. Refuse an unknown agent, and a mute of the last agent that is not muted."""
        epoch = self._journal.epoch
        if not await self._inbox.claim(entry.key, epoch) or self._execution.is_over:
            return  # if the run ended, the next step of the owner answers the caller
        agents = [each.id for each in self._debate.all_participants]
        if entry.agent not in agents:
            await self._inbox.mark_refused(entry.key, epoch, UNKNOWN_AGENT, agents)
        elif entry.act == "mute" and self._journal.recorded.muted | {entry.agent} >= set(agents):
            await self._inbox.mark_refused(entry.key, epoch, LAST_AGENT)
        else:
            await self._record(entry)

    async def _close_checkpoint_or_record(self, entry: InboxEntry) -> None:
        """Record an intervention and close its checkpoint, if any.

        Refuse it if it names or needs a checkpoint that is not open, answers a question that the checkpoint does not ask, or is
        guidance beyond its bound.
        """
        recorded = self._journal.recorded
        is_too_much = self._exceeds_guidance(entry)
        refusable = is_too_much or bool(entry.checkpoint) or entry.act in ACTS_FOR_CHECKPOINT
        if refusable:
            taken = await self._inbox.claim(entry.key, self._journal.epoch)
            if not taken or self._execution.is_over:
                return  # if the run ended, the next step of the owner answers the caller
        if is_too_much:
            await self._inbox.mark_refused(entry.key, self._journal.epoch, GUIDANCE_FULL)
            return
        rests = recorded.pausing or recorded.failure is not None
        key = None
        if entry.act in CLOSING_ACTS and not rests:
            key = self._debate.checkpoints.claim_for(entry.act, entry.checkpoint, entry.question_ids)
        if key is not None:
            closed = CheckpointClosed(
                request_id=entry.intervened.request_id, intervention=entry.intervened.intervention
            )
            await self._record(entry, create_event(key, closed, recorded.attempt))
            self._debate.checkpoints.notify_closed(key)
        elif refusable:
            await self._refuse(entry, rests=rests)
        else:
            await self._record(entry)

    def _exceeds_guidance(self, entry: InboxEntry) -> bool:
        size = len(entry.intervened.intervention.guide.text.encode())
        return entry.act == "guide" and self._journal.recorded.guidance_bytes + size > MAX_GUIDANCE_BYTES

    async def _refuse(self, entry: InboxEntry, *, rests: bool) -> None:
        checkpoints, epoch = self._debate.checkpoints, self._journal.epoch
        asked = None if rests else checkpoints.question_ids(entry.act, entry.checkpoint)
        if asked is not None:
            await self._inbox.mark_refused(entry.key, epoch, UNKNOWN_QUESTION, sorted(asked))
        elif entry.checkpoint and (rests or not checkpoints.is_open(entry.checkpoint)):
            await self._inbox.mark_refused(entry.key, epoch, CHECKPOINT_CLOSED)
        else:
            await self._inbox.mark_refused(entry.key, epoch, NO_CHECKPOINT)

    async def _record(self, entry: InboxEntry, *after: Event) -> None:
        """Record an intervention once, with its effects in the same record, and mark it in the inbox."""
        interventions = self._journal.recorded.interventions
        request_id = entry.intervened.request_id
        if request_id not in interventions:
            await self._journal.append(create_event(f"intervention/{request_id}", entry.intervened), *after)
        await self._inbox.mark_recorded(entry.key, interventions[request_id][0])

    def _is_recorded(self, entry: InboxEntry) -> bool:
        return entry.intervened.request_id in self._journal.recorded.interventions

    async def _stop(self, work: asyncio.Task[None]) -> None:
        """Stop the format, so that it records nothing any more."""
        self._execution.is_over = True
        work.cancel()
        await asyncio.wait({work})

    async def _notify_when_calls_end(self) -> None:
        await self._debate.gate.wait_until_empty()
        self._queue.put_nowait(_NoCallsInFlight())

    def _create_resumed_event(self) -> Event:
        return create_event("resumed", Resumed(), self._journal.recorded.attempt + 1)
