"""One debate in the hands of the replica that claimed it: from the claim to its end, or to where it rests."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from opentelemetry.trace import Status, StatusCode

from parley.orchestrator.agents import Agents, Call
from parley.orchestrator.debate import Debate
from parley.orchestrator.envelope import Draft
from parley.orchestrator.events import (
    CheckpointClosed,
    Closed,
    Concluded,
    CorruptEventError,
    DebateCreated,
    Paused,
    Resumed,
    decode,
)
from parley.orchestrator.holding import Holding, leaves
from parley.orchestrator.inbox import Inbox, Wish
from parley.orchestrator.journal import ClaimLostError, Journal, read_events
from parley.orchestrator.phases.record import record
from parley.orchestrator.rows import (
    CANCELLED,
    COMPLETED,
    FAILED,
    PAUSED,
    PENDING,
    RUNNING,
    WAITING,
    Row,
    Rows,
)
from parley.orchestrator.services import Services
from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger
from parley.runtime.telemetry import extract, tracer
from parley.storage.ports import Log, StorageError, StoreUnavailableError

__all__ = ["Ownership", "Workshop"]

_logger = get_logger(__name__)
_tracer = tracer(__name__)

_ANSWERS = frozenset({"continue", "guide", "end", "answer", "approve"})
"""Wishes that a checkpoint waits for."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What an owner works with. `beat_seconds` is how often it shows that it lives."""

    log: Log
    rows: Rows
    inbox: Inbox
    agents: Agents
    services: Services
    clock: Clock
    owner: str
    beat_seconds: float


@dataclass(frozen=True, slots=True)
class _CallsEnded:
    """The last call that was in flight has ended."""


class Ownership:
    """One debate, owned. Make it, `run` it, hand it wishes.

    Attributes:
        accepted: Set once the first event is known to be durable.
        brief: Whether it costs no model call: the debate has ended, or nothing but its wishes is taken up.
    """

    def __init__(
        self, row: Row, workshop: Workshop, wishes: Sequence[Wish] = (), *, brief: bool = False
    ) -> None:
        """Prepare to own a debate; `wishes` are those that wait for it now, and all there is to do if it is `brief`."""
        self.accepted = asyncio.Event()
        self.brief = brief or row.status in (COMPLETED, CANCELLED)
        self._only_wishes = brief
        self._row = row
        self._shop = workshop
        self._wishes: asyncio.Queue[Wish | _CallsEnded] = asyncio.Queue()
        self._known: set[str] = set()
        self._first_wishes = tuple(wishes)
        self._journal: Journal
        self._debate: Debate
        self._holding: Holding

    def deliver(self, wish: Wish) -> None:
        """Hand over a wish; one that was handed over already is passed over."""
        if wish.key not in self._known:
            self._known.add(wish.key)
            self._wishes.put_nowait(wish)

    async def run(self) -> None:
        """Claim the debate and run it until it ends, fails or rests.

        Raises:
            ClaimLostError: another replica has it.
            StorageError: the store could not be used; nothing is lost.
        """
        created = await self._claim()
        if self._journal.recorded.closed:
            return
        shop = self._shop
        self._debate = Debate(
            created.spec, self._journal, shop.agents, shop.services, shop.clock, self._tell_status
        )
        self._holding = Holding(self._debate, self._journal, shop.clock, self._tell_status)
        name = f"invoke_workflow {created.spec.format}"
        carrier = {"traceparent": created.traceparent} if created.traceparent else {}
        with _tracer.start_as_current_span(name, context=extract(carrier)) as span:
            span.set_attribute("gen_ai.operation.name", "invoke_workflow")
            span.set_attribute("gen_ai.conversation.id", self._row.debate)
            span.set_attribute("parley.epoch", self._journal.epoch)
            await self._alive()
            failure = self._journal.recorded.failure
            if failure is not None:
                span.set_status(Status(StatusCode.ERROR, f"{failure.reason}: {failure.message}"))

    async def release(self) -> None:
        """Give the debate up after `run` was cancelled, so that another replica can go on at once."""
        if not self.accepted.is_set():
            return
        recorded = self._journal.recorded
        if recorded.concluded is not None and not recorded.closed:
            # It may have been cancelled before its row told of the end, by which others know what is left to do.
            await self._settle(_ended_status(recorded.concluded), is_open=True, owner=None)
        else:
            await self._shop.rows.release(self._row, self._journal.epoch)

    async def _claim(self) -> DebateCreated:
        row, shop = self._row, self._shop
        events = await read_events(shop.log, row.tenant, row.debate)
        self._journal = Journal(shop.log, shop.clock, row.tenant, row.debate, events)
        opening = None if events else decode("debate_created", row.opening)
        created = self._journal.recorded.created or opening
        if not isinstance(created, DebateCreated):
            raise CorruptEventError(f"the log of {row.debate} does not begin with its creation")
        if self._journal.recorded.closed:
            # The owner before stopped between its last event and its row; nothing comes after `Closed`.
            await shop.rows.claimed(row, shop.owner, self._journal.epoch, self._now())
            await self._lay_down()
            return created
        await self._journal.claim(shop.owner, *([Draft("created", opening)] if opening else []))
        self.accepted.set()
        await shop.rows.claimed(row, shop.owner, self._journal.epoch, self._now())
        return created

    async def _alive(self) -> None:
        """Work while the journal is written and the beat goes on; either ends the work when the claim is lost.

        Raises:
            ClaimLostError: it is.
            StorageError: the store could not be used.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                beside = [tasks.create_task(self._journal.write()), tasks.create_task(self._beat())]
                await self._work()
                for task in beside:
                    task.cancel()
        except ExceptionGroup as group:
            for told in (ClaimLostError, StorageError):
                for leaf in leaves(group):
                    if isinstance(leaf, told):
                        raise leaf from group
            raise

    async def _beat(self) -> None:
        beat = self._row.beat + 1
        while True:
            await self._shop.clock.sleep(self._shop.beat_seconds)
            beat += 1
            try:
                lives = await self._shop.rows.beat(self._row, self._journal.epoch, beat)
            except StoreUnavailableError as away:
                # Safety is the log's doing; a missed beat only brings a takeover nearer.
                _logger.warning("store away; beating again soon", error=str(away))
                continue
            if not lives:
                raise ClaimLostError(f"debate {self._row.debate} was claimed by another replica")

    async def _work(self) -> None:
        recorded = self._journal.recorded
        for wish in self._first_wishes:
            self._known.add(wish.key)
            await self._take_at_rest(wish)
        goes_on = recorded.concluded is None and recorded.failure is None and not recorded.pausing
        if goes_on and self._only_wishes:
            waits = self._row.status in (PENDING, RUNNING, WAITING)
            await self._settle(self._row.status if waits else PENDING, is_open=True, owner=None)
            return
        if goes_on:
            status = WAITING if recorded.wait or recorded.open_checkpoints else RUNNING
            await self._settle(status, is_open=True, owner=self._shop.owner)
            await self._hold()
        if recorded.concluded is not None:
            await self._close(recorded.concluded)
        elif recorded.failure is not None:
            await self._settle(FAILED, is_open=False, owner=None)
            await self._look_for_wishes()
        elif recorded.pausing:
            await self._rest()

    async def _hold(self) -> None:
        """Run the format, and meanwhile take up wishes, until one of both ends the debate or brings it to rest."""
        work = asyncio.create_task(self._holding.run())
        steering = asyncio.create_task(self._steer(work))
        try:
            await asyncio.wait({work, steering}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                # A wish that is being recorded now, or that stopped the format, is recorded before the run is left.
                self._wishes.put_nowait(_CallsEnded())
                await asyncio.wait({steering})
        finally:
            for task in (work, steering):
                task.cancel()
            await asyncio.gather(work, steering, return_exceptions=True)
        for task in (work, steering):
            if not task.cancelled():
                task.result()

    async def _steer(self, work: asyncio.Task[None]) -> None:
        """Take up wishes until one ends the run; those that come after the end stay where they are."""
        async with asyncio.TaskGroup() as waits:
            while True:
                wish = await self._wishes.get()
                if work.done():
                    return
                if not self._holding.over and await self._take_up(wish, work, waits):
                    return

    async def _take_up(
        self, wish: Wish | _CallsEnded, work: asyncio.Task[None], waits: asyncio.TaskGroup
    ) -> bool:
        """Take up a wish while the format runs; return whether that ends the run."""
        recorded = self._journal.recorded
        if isinstance(wish, _CallsEnded):
            if rests := recorded.pausing and self._debate.gate.empty:
                await self._stop(work)
            return rests
        if wish.wish.request_id in recorded.interventions:
            await self._record(wish)
            return False
        match wish.wish.wish:
            case "cancel":
                await self._stop(work)
                await self._record(wish, Draft("concluded", Concluded("cancelled")))
                return True
            case "pause" if wish.wish.stop_calls:
                await self._stop(work)
                await self._record(wish)
                await self._cancel_calls()
                return True
            case "pause":
                self._debate.gate.close()
                await self._record(wish)
                waits.create_task(self._tell_when_emptied())
            case "resume" if recorded.pausing:
                await self._record(wish, self._resumed())
                self._debate.gate.open()
            case _:
                await self._record_answer(wish)
        return False

    async def _stop(self, work: asyncio.Task[None]) -> None:
        """Stop the format for good, so that it records nothing any more."""
        self._holding.over = True
        work.cancel()
        await asyncio.wait({work})

    async def _tell_when_emptied(self) -> None:
        await self._debate.gate.emptied()
        self._wishes.put_nowait(_CallsEnded())

    async def _cancel_calls(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for step, attempt in self._journal.recorded.unfinished():
                call = Call(self._row.tenant, self._row.debate, step, attempt)
                tasks.create_task(self._shop.agents.cancel(call))

    async def _take_at_rest(self, wish: Wish) -> None:
        """Take up a wish while no format runs."""
        recorded = self._journal.recorded
        if wish.wish.request_id in recorded.interventions:
            await self._record(wish)
            return
        if recorded.concluded is not None:
            return
        match wish.wish.wish:
            case "cancel":
                await self._record(wish, Draft("concluded", Concluded("cancelled")))
            case "resume" if recorded.failure is not None or recorded.pausing:
                await self._record(wish, self._resumed())
            case _:
                await self._record_answer(wish)
                if wish.wish.stop_calls:
                    await self._cancel_calls()

    async def _record_answer(self, wish: Wish) -> None:
        """Record a wish; where the debate waits for a person, what a person may wish there ends the wait.

        A wish that names a checkpoint ends that one, or is refused.
        """
        recorded, wanted = self._journal.recorded, wish.wish.checkpoint
        if wanted:
            taken = await self._shop.inbox.take(wish.key, self._journal.epoch)
            if not taken or self._holding.over:  # where the run ended, what comes after it answers the wish
                return
        rests = recorded.pausing or recorded.failure is not None
        key = self._debate.take_checkpoint(wanted) if wish.wish.wish in _ANSWERS and not rests else None
        if key is None and wanted:
            await self._shop.inbox.refused(wish.key, self._journal.epoch)
            return
        if key is None:
            await self._record(wish)
            return
        closed = CheckpointClosed(wish.wish.wish, wish.wish.text, wish.wish.approved)
        await self._record(wish, Draft(key, closed, recorded.attempt))
        self._debate.answered(key)

    async def _record(self, wish: Wish, *after: Draft) -> None:
        """Record a wish once, with what follows from it in the same record."""
        interventions = self._journal.recorded.interventions
        if wish.wish.request_id not in interventions:
            await self._journal.append(_draft(wish), *after)
        await self._shop.inbox.recorded(wish.key, interventions[wish.wish.request_id][0])

    def _resumed(self) -> Draft:
        return Draft("resumed", Resumed(), self._journal.recorded.attempt + 1)

    async def _rest(self) -> None:
        if not self._journal.recorded.paused:
            await self._journal.append(Draft("paused", Paused(), self._journal.recorded.attempt))
        await self._settle(PAUSED, is_open=False, owner=None)
        await self._look_for_wishes()

    async def _close(self, concluded: Concluded) -> None:
        self.brief = True
        if concluded.status == "cancelled":
            await self._cancel_calls()
        if not self._journal.recorded.closed:
            # The answer is there; what follows may wait for services that are away.
            await self._settle(_ended_status(concluded), is_open=True, owner=self._shop.owner)
            at = self._journal.recorded.concluded_at
            assert at is not None
            self._debate.gate.open()  # a pause that came too late is of no account
            await record(self._debate, concluded, at)
            await self._journal.append(Draft("closed", Closed()))
        await self._lay_down()

    async def _lay_down(self) -> None:
        """Note in the row that the debate is closed, and answer the wishes that nobody takes up any more."""
        concluded = self._journal.recorded.concluded
        assert concluded is not None
        interventions = self._journal.recorded.interventions
        for wish in await self._waiting():
            if wish.wish.request_id in interventions:
                await self._record(wish)
        await self._settle(_ended_status(concluded), is_open=False, owner=None)
        for wish in await self._waiting():
            await self._shop.inbox.ended(wish.key)

    async def _look_for_wishes(self) -> None:
        """Ask for an owner again where a wish came in while the debate was laid to rest."""
        if await self._waiting():
            await self._shop.rows.reopen(self._row.tenant, self._row.debate)

    async def _waiting(self) -> Sequence[Wish]:
        return await self._shop.inbox.waiting_for(self._row.key)

    async def _settle(self, status: str, *, is_open: bool, owner: str | None) -> None:
        await self._shop.rows.settle(
            self._row, self._journal.epoch, status=status, is_open=is_open, owner=owner, updated=self._now()
        )

    async def _tell_status(self, status: str) -> None:
        try:
            await self._settle(status, is_open=True, owner=self._shop.owner)
        except StoreUnavailableError as away:
            # The log is the truth; only lists show another status until the next one is told.
            _logger.warning("store away; the debate's row lags behind", error=str(away))

    def _now(self) -> str:
        return self._shop.clock.now().isoformat(timespec="microseconds")


def _ended_status(concluded: Concluded) -> str:
    return COMPLETED if concluded.status == "completed" else CANCELLED


def _draft(wish: Wish) -> Draft:
    return Draft(f"wish/{wish.wish.request_id}", wish.wish)
