"""Runs the debates of a replica: claims those that need an owner, runs them, and releases them when it drains.

Leases only decide how soon another replica takes over. The log ensures that two replicas never write the same debate.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context

from msgspec import Struct

from parley.orchestrator.engine.call_admission import Slot
from parley.orchestrator.engine.document_limits import DocumentLimits
from parley.orchestrator.engine.execution import leaf_exceptions
from parley.orchestrator.engine.fairness import order_fairly
from parley.orchestrator.engine.inbox import InboxEntry
from parley.orchestrator.engine.owner import DebateOwner, OwnerDependencies
from parley.orchestrator.engine.silent_owners import SilentOwners
from parley.orchestrator.engine.slots import Slots
from parley.orchestrator.log.debate_record import CANCELLED, COMPLETED, DebateRecord
from parley.orchestrator.log.events import CorruptEventError, UnknownEventError
from parley.orchestrator.log.journal import ClaimLostError
from parley.orchestrator.model.times import time_text
from parley.runtime.labels import label_scope
from parley.runtime.logs import get_logger
from parley.runtime.unreadable import UnreadableError
from parley.storage.ports import StorageError

_logger = get_logger(__name__)
_MAX_FAULTS = 3
"""Faults in a row, without progress between them, after which a debate is marked as failed."""
_MAX_PAUSE = 600.0
_MAX_REASON = 1000
_MAX_COUNTED = 100
"""Running debates of a tenant are counted up to this number; more make no difference."""
_SCANS_A_WHOLE_ONE = 5
"""One of so many scans, and each one that was asked for, looks for everything. The others leave out what can wait."""

_NO_DOCUMENT_LIMITS = DocumentLimits()


class RunnerSettings(Struct, frozen=True):
    """How a replica claims and runs debates.

    Attributes:
        lease_seconds: How long an owner may send no heartbeat before another replica claims.
        poll_seconds: Seconds between two scans of the store for debates and interventions.
        max_debates: Debates that run at a time, and as many more that are owned for a moment: they have ended, or there is
            no slot and only their interventions are handled. Debates that wait for a person or a timer do not count. An eighth
            more run for tenants that have none running here, so that no tenant blocks all others.
        exclusive: Whether no other process can use the store, so that any other owner has ended.
        documents: Bytes of documents that the debates owned here may have.
        adopt: Whether to claim debates that were not created here and have no interventions now.
    """

    lease_seconds: float = 15.0
    poll_seconds: float = 1.0
    max_debates: int = 64
    exclusive: bool = False
    adopt: bool = True
    documents: DocumentLimits = _NO_DOCUMENT_LIMITS


class Runner:
    """Runs the debates of this replica."""

    def __init__(self, dependencies: OwnerDependencies, settings: RunnerSettings) -> None:
        """Own debates under the owner name in the dependencies."""
        self._dependencies = dependencies
        self._settings = settings
        self._owned: dict[str, tuple[DebateOwner, asyncio.Task[None]]] = {}
        self._slots = Slots(self._owned, settings.max_debates, settings.documents)
        self._silent_owners = SilentOwners(dependencies.index, dependencies.clock, settings.lease_seconds)
        self._retry_at: dict[str, float] = {}
        self._faults: dict[str, int] = {}
        self._expected_keys: set[str] = set()
        self._left_waiting: set[str] = set()
        self._unreleased_keys: set[str] = set()
        self._wake = asyncio.Event()
        self._queued: set[str] = set()
        self._lacks_room = False
        self._any_waits = False
        self._tasks: asyncio.TaskGroup | None = None
        self._drain_task: asyncio.Task[None] | None = None

    @property
    def owner(self) -> str:
        """The name of this replica in claims."""
        return self._dependencies.owner

    def has_slot(self, tenant: str, document_bytes: int = 0) -> bool:
        """Return whether a new debate of a tenant may start here at once.

        A slot and room for its documents are free, and no other debate is first. Debates that have ended and only have their
        follow-up left need no slot.
        """
        slots = self._slots
        if self._tasks is None or self.is_draining or not slots.count_free(tenant, brief=False):
            return False
        if document_bytes and (self._lacks_room or not slots.has_room(tenant, document_bytes)):
            return False
        return not self._queued or (slots.runs_none(tenant) and not any(map(slots.runs_none, self._queued)))

    @property
    def is_draining(self) -> bool:
        """Whether this replica stops and claims no debates any more."""
        return self._drain_task is not None

    def owns(self, key: str) -> bool:
        """Return whether a debate is owned here, by the key of its record."""
        return key in self._owned

    def run_soon(self, record: DebateRecord) -> None:
        """Run a debate that was accepted here as soon as a slot is free."""
        self._expected_keys.add(record.key)
        self.wake()

    def wake(self) -> None:
        """Scan the store now."""
        self._wake.set()

    def _wake_if_any_waits(self) -> None:
        """Scan the store now if a debate may wait for the place that is free: a scan is some ten reads."""
        if self._any_waits:
            self.wake()

    async def run(self) -> None:
        """Scan for debates and interventions until cancelled. If the store is unavailable, wait for it."""
        async with asyncio.TaskGroup() as self._tasks:
            whole_failed = False
            for number in itertools.count():
                whole = whole_failed or self._wake.is_set() or number % _SCANS_A_WHOLE_ONE == 0
                self._wake.clear()
                whole_failed = whole
                try:
                    await self._scan(whole=whole)
                    whole_failed = False
                except StorageError as error:
                    _logger.warning("store unavailable; scanning again soon", error=str(error))
                except Exception:
                    # One unreadable record must not stop the others.
                    _logger.exception("a scan of the store failed; scanning again soon")
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.poll_seconds):
                        await self._wake.wait()

    async def start_debate(self, record: DebateRecord, *, is_new: bool = False) -> bool:
        """Own a debate whose record was written just now, or is written along with its first event if it `is_new`.

        Return True once that event is durable, False if that is unknown or no slot is free.

        Raises:
            DuplicateError: a new debate was not written: it is there, or another one of the same request.
            StorageError: it is not known whether a new debate was written.
        """
        # A scan may have claimed the debate already.
        if record.key not in self._owned and not self.has_slot(record.tenant, record.document_bytes):
            # While the record was written, another debate took the slot, or this replica began to drain: any other may start this one.
            self._unreleased_keys.add(record.key)
            await self._dependencies.index.release(record, record.epoch)
            return False
        debate_owner, task = self._owned.get(record.key) or self._start_owner(record, (), is_new=is_new)
        accepted = asyncio.ensure_future(debate_owner.accepted.wait())
        try:
            await asyncio.wait({accepted, task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            accepted.cancel()
        if debate_owner.refusal is not None:
            raise debate_owner.refusal
        return debate_owner.accepted.is_set()

    async def drain(self) -> None:
        """Stop and release every debate. A second call waits for the first one."""
        if self._drain_task is None:
            self._drain_task = asyncio.create_task(self._release_all())
        await asyncio.shield(self._drain_task)

    async def _release_all(self) -> None:
        owned = list(self._owned.values())
        for _, task in owned:
            task.cancel()
        await asyncio.gather(*(_release_after_stop(*each) for each in owned), return_exceptions=True)

    async def _scan(self, *, whole: bool = True) -> None:
        """Look for interventions and debates, and start what can run here.

        Unless it is a `whole` scan, no debate is looked for that is due, and no intervention by a replica that has no debates and
        finds none: the replica that a person asks looks for that one at once. If no other process can use the store and no debate
        waits here, no owner can be gone since the last whole scan.
        """
        owned_before = set(self._owned)
        reads_inbox = whole or bool(owned_before)
        entries = await self._deliver_interventions() if reads_inbox else {}
        now = self._dependencies.clock.now()
        may_be_gone = whole or self._any_waits or not self._settings.exclusive
        owned = await self._list_of_gone_owners() if may_be_gone else ()
        unowned, are_all = await self._dependencies.index.list_waiting()
        if (owned or unowned) and not reads_inbox:
            entries = await self._deliver_interventions()
        overdue = await self._dependencies.index.list_overdue(time_text(now)) if whole else ()
        # A debate that is released between the two searches is in both; the second one is right.
        seen = {record.key: record for record in (*owned, *unowned)}
        for record in await self._find_unreleased(seen.keys()):
            seen[record.key] = record
        for key in entries.keys() - seen.keys():
            if unlisted := await self._resolve_unlisted(key, entries[key]):
                seen[key] = unlisted
        if whole:
            self._forget_absent(seen.keys() | {record.key for record in overdue}, are_all=are_all)
        waiting = [
            record
            for record in seen.values()
            if self._is_claimable(record, steered=record.key in entries)
            # Its owner here released it during this scan: the next scan sees its present state.
            and not (record.key in owned_before and record.owner == self._dependencies.owner)
        ]
        in_order = order_fairly(waiting, await self._count_running(waiting))
        if self.is_draining:
            return
        self._start_waiting(in_order, entries)
        due = [record for record in overdue if record.key not in entries and self._is_claimable(record)]
        for record in filter(self._slots.may_own_briefly, due):
            # It makes no call to record that the checkpoint expired.
            self._start_owner(record, (), brief=True)
        found_waiting = bool(entries) or any(record.key not in self._owned for record in (*waiting, *due))
        self._any_waits = found_waiting or (self._any_waits and not whole)
        if owned_before - self._owned.keys():
            self._wake_if_any_waits()  # what ended meanwhile was not asked whether anything waits

    def _start_waiting(
        self, waiting: Iterable[DebateRecord], entries: Mapping[str, Sequence[InboxEntry]]
    ) -> None:
        """Start the debates for which a slot and room for their documents are free, and note who waits for them."""
        queued, lacks_room = set(), False
        for record in waiting:
            interventions, ended = tuple(entries.get(record.key, ())), _has_ended(record)
            has_slot = self._slots.count_free(record.tenant, brief=ended) > 0
            if has_slot and self._slots.has_room(record.tenant, record.document_bytes, brief=ended):
                self._start_owner(record, interventions)
                continue
            if has_slot:
                lacks_room = True
            elif not ended:
                queued.add(record.tenant)
            if interventions and self._slots.may_own_briefly(record):
                self._start_owner(record, interventions, brief=True)
        self._queued, self._lacks_room = queued, lacks_room

    async def _deliver_interventions(self) -> dict[str, list[InboxEntry]]:
        """Pass interventions to the debates that are owned here. Return all that wait, by debate."""
        entries: dict[str, list[InboxEntry]] = {}
        for entry in await self._dependencies.inbox.list_waiting():
            entries.setdefault(entry.debate, []).append(entry)
            if entry.debate in self._owned:
                self._owned[entry.debate][0].deliver(entry)
        return entries

    async def _list_of_gone_owners(self) -> list[DebateRecord]:
        """Return debates whose owner is gone or may be: any owner, if no other process can use the store."""
        if not self._settings.exclusive:
            return await self._silent_owners.list()
        # Its own are among them; beside these a look finds more than fit its slots, and one if it has none.
        most = len(self._owned) + max(4 * self._settings.max_debates, 1)
        return await self._dependencies.index.list_owned(of_each=most)

    async def _count_running(self, waiting: Sequence[DebateRecord]) -> Counter[str]:
        """Count the running debates on all replicas for each tenant with waiting debates. For one tenant alone it makes no difference."""
        tenants = {record.tenant for record in waiting}
        if len(tenants) < 2 or not any(self._slots.count_free(tenant, brief=False) for tenant in tenants):
            return Counter()
        index = self._dependencies.index
        owned = Counter({tenant: await index.count_running(tenant, _MAX_COUNTED) for tenant in tenants})
        return owned - Counter(record.tenant for record in waiting if record.owner is not None)

    async def _find_unreleased(self, seen: Iterable[str]) -> list[DebateRecord]:
        """Return the records of debates that stopped here and still name this replica as owner: they run nowhere."""
        found = []
        self._unreleased_keys -= self._owned.keys()
        for key in self._unreleased_keys.difference(seen):
            try:
                record = await self._dependencies.index.get_by_key(key)
            except UnreadableError:  # skipped: the reader has logged it
                record = None
            if record is not None and record.open and record.owner == self._dependencies.owner:
                found.append(record)
            else:
                self._unreleased_keys.discard(key)
        return found

    async def _resolve_unlisted(self, key: str, entries: Sequence[InboxEntry]) -> DebateRecord | None:
        """Return the record of a debate with interventions that the scan did not find, if it needs an owner.

        The process that added an intervention may have ended before it reopened the debate.
        """
        if key in self._owned:
            return None
        try:
            record = await self._dependencies.index.get_by_key(key)
        except UnreadableError:  # already logged; its interventions wait for a version that can read it
            return None
        if record is not None and record.open:
            return record
        if record is None or _has_ended(record):
            for entry in entries:
                await self._dependencies.inbox.mark_ended(entry.key)
        else:
            await self._dependencies.index.reopen(record.tenant, record.debate)
        return None

    def _is_claimable(self, record: DebateRecord, *, steered: bool = False) -> bool:
        return record.key not in self._owned and self._may_claim(record, steered=steered)

    def _may_claim(self, record: DebateRecord, *, steered: bool) -> bool:
        if self._dependencies.clock.monotonic() < self._retry_at.get(record.key, 0.0):
            return False
        if self._dependencies.formats.find(record.format) is None:
            return False  # a replica that knows the format continues the debate
        # The follow-up of an answered debate needs no model call.
        ours = (
            record.owner == self._dependencies.owner
            or record.key in self._expected_keys
            or record.key in self._left_waiting
        )
        if not (self._settings.adopt or steered or _has_ended(record) or ours):
            return False
        if record.owner in (None, self._dependencies.owner) or self._settings.exclusive:
            return True
        return self._silent_owners.is_gone(record)

    def _delay_retry(self, record: DebateRecord, seconds: float) -> None:
        """Do not claim this debate again for so long: a lasting error must not become a busy loop."""
        self._retry_at[record.key] = self._dependencies.clock.monotonic() + seconds

    def _forget_absent(self, present: set[str], *, are_all: bool) -> None:
        # A scan does not find live debates that are owned here.
        kept = present | self._owned.keys()
        self._silent_owners.forget_others(kept)
        for known in (self._retry_at, self._faults):
            for key in known.keys() - kept:
                del known[key]
        if are_all:  # else an expected debate may only be missing from this scan
            self._expected_keys &= present

    def _start_owner(
        self,
        record: DebateRecord,
        entries: tuple[InboxEntry, ...],
        *,
        brief: bool = False,
        is_new: bool = False,
    ) -> tuple[DebateOwner, asyncio.Task[None]]:
        assert self._tasks is not None
        self._left_waiting.discard(record.key)
        slot = Slot(lambda: self.has_slot(record.tenant), self._wake_if_any_waits)
        debate_owner = DebateOwner(record, self._dependencies, slot, entries, brief=brief, is_new=is_new)
        # A new context: the deadline and the span of the request must not apply to the debate.
        task = self._tasks.create_task(self._run_owner(record, debate_owner), context=Context())
        self._owned[record.key] = (debate_owner, task)
        return self._owned[record.key]

    async def _run_owner(self, record: DebateRecord, debate_owner: DebateOwner) -> None:
        """Run one debate. Its errors do not affect the others."""
        with label_scope(tenant=record.tenant, debate=record.debate):
            may_wait = True
            try:
                await debate_owner.run()
                may_wait = debate_owner.resumes_later or bool(debate_owner.unable_reason)
                if debate_owner.unable_reason:
                    _logger.error(
                        "debate released for a replica that can continue it", error=debate_owner.unable_reason
                    )
                    self._delay_retry(record, self._settings.lease_seconds)
                if debate_owner.resumes_later:
                    self._expected_keys.add(record.key)
                if debate_owner.waits_for_person and not self._settings.adopt:
                    self._left_waiting.add(record.key)
            except ClaimLostError as lost:
                _logger.info("claim lost", reason=str(lost))
                # By then the record names the faster owner, or that owner wrote last before it ended.
                self._delay_retry(record, self._settings.poll_seconds)
            except UnknownEventError as newer:
                _logger.error("debate cannot be run here", error=str(newer))  # noqa: TRY400 - the message is enough
                self._delay_retry(record, self._settings.lease_seconds)
            except CorruptEventError as unreadable:
                _logger.error("debate cannot be run", error=str(unreadable))  # noqa: TRY400 - the message is enough
                await self._handle_fault(record, debate_owner, unreadable)
            except StorageError as error:
                _logger.warning("store unavailable; the debate continues when it is back", error=str(error))
                self._delay_retry(record, self._settings.lease_seconds)
            except Exception as fault:
                _logger.exception("debate stopped by a fault of the orchestrator")
                await self._handle_fault(record, debate_owner, fault)
            finally:
                self._owned.pop(record.key, None)
                self._dependencies.end_publishing(record.tenant, record.debate)
                if may_wait:
                    self._unreleased_keys.add(record.key)
                    self._any_waits = True
                self._wake_if_any_waits()

    async def _handle_fault(self, record: DebateRecord, debate_owner: DebateOwner, fault: Exception) -> None:
        """Wait longer after each fault without progress, and mark the debate as failed after three."""
        count = 1 if debate_owner.has_progressed else self._faults.get(record.key, 0) + 1
        self._faults[record.key] = count
        self._delay_retry(record, min(self._settings.lease_seconds * 2 ** (count - 1), _MAX_PAUSE))
        if count < _MAX_FAULTS:
            return
        first = next(leaf_exceptions(fault))
        why = f"{count} runs in a row ended in a fault without progress: {type(first).__name__}: {first}"[
            :_MAX_REASON
        ]
        try:
            await debate_owner.mark_failed(f"{why}; resume the debate to try again")
        except Exception as error:  # noqa: BLE001 - a later scan tries again; other debates continue
            _logger.warning("the debate could not be marked as failed", error=str(error))


async def _release_after_stop(debate_owner: DebateOwner, task: asyncio.Task[None]) -> None:
    """Release a debate as soon as its own task has stopped."""
    await asyncio.wait({task})
    await debate_owner.release()


def _has_ended(record: DebateRecord) -> bool:
    return record.status in (COMPLETED, CANCELLED)
