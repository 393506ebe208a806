"""Creates deliveries from the logs of debates: whatever is recorded there comes to every hook that asked for it.

The status of a debate is written with a mark that there may be news. The mark goes once the deliveries are in the store, so that after
any crash a replica finds it. Nothing here is on a debate's way: with no hook in a tenant, nobody looks.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Final

from parley.orchestrator import metrics
from parley.orchestrator.delivery.deliveries import DeliveryStore, create_delivery
from parley.orchestrator.delivery.hooks import HookStore, StoredHook
from parley.orchestrator.delivery.news import list_news
from parley.orchestrator.delivery.subscribers import Subscribers
from parley.orchestrator.log.debate_record import DebateRecord
from parley.orchestrator.log.envelope import Envelope, open_entry
from parley.orchestrator.log.events import CorruptEventError
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.reading import log_name
from parley.orchestrator.model.times import time_of
from parley.runtime.clock import Clock, wait_or_timeout
from parley.runtime.labels import label_scope
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.logs import get_logger
from parley.storage.ports import Log, Record, StorageError, StoreDamagedError
from parley.v1.event_pb2 import DebateCreated
from parley.v1.hook_pb2 import HookEvent

_SWEEP_SECONDS: Final = 15.0
"""How often debates are looked for whose news nobody took up: their replica has ended, or did not know of the hook yet."""
_CLEAN_SECONDS: Final = 3600.0
_PAGE: Final = 100
_AT_A_TIME: Final = 8
"""Debates that are looked at together."""
_LOG_PAGE: Final = 20
"""Records of a log that are read at a time."""

_logger = get_logger(__name__)


class Outbox:
    """Creates the deliveries of all tenants."""

    def __init__(
        self,
        log: Log,
        index: DebateIndex,
        hooks: HookStore,
        deliveries: DeliveryStore,
        subscribers: Subscribers,
        clock: Clock,
        *,
        wake_dispatcher: Callable[[], None],
        kept_for: timedelta,
    ) -> None:
        """Create nothing yet: see `run`. Deliveries that ended are kept for `kept_for`."""
        self._log = log
        self._index = index
        self._hooks = hooks
        self._deliveries = deliveries
        self._subscribers = subscribers
        self._clock = clock
        self._wake_dispatcher = wake_dispatcher
        self._kept_for = kept_for
        self._noticed: dict[tuple[str, str], None] = {}
        self._wake = asyncio.Event()
        self._turn = asyncio.Lock()

    def notice(self, tenant: str, debate: str) -> None:
        """Look soon for news of a debate, if its tenant has hooks."""
        if self._subscribers.has_hooks(tenant):
            self._noticed[tenant, debate] = None
            self._wake.set()

    async def finish(self) -> None:
        """Create the deliveries of what was noticed, as `run` does. May raise StorageError."""
        await self._tell_noticed()

    def notice_hooks(self) -> None:
        """Read the hooks anew: one was created or deleted here."""
        self._subscribers.forget()
        self._wake.set()
        self._wake_dispatcher()

    async def run(self) -> None:
        """Create deliveries, and delete old ones, until cancelled."""
        sweep_at = clean_at = self._clock.monotonic()
        while True:
            now = self._clock.monotonic()
            try:
                await self._subscribers.refresh()
                await self._tell_noticed()
                if now >= sweep_at:
                    await self.sweep()
                    sweep_at = now + _SWEEP_SECONDS
                if now >= clean_at:
                    await self._deliveries.delete_ended(self._clock.now() - self._kept_for)
                    clean_at = now + _CLEAN_SECONDS
            except StorageError as error:
                _logger.warning("store unavailable; deliveries are created later", error=str(error))
            except Exception:
                # One debate that cannot be read must not end the orchestrator.
                _logger.exception("deliveries could not be created; trying again later")
            await wait_or_timeout(self._wake, self._clock, _SWEEP_SECONDS)
            self._wake.clear()

    async def sweep(self) -> None:
        """Create the deliveries of all debates with news, whoever runs them."""
        for tenant, since in list(self._subscribers.tenants()):
            while found := await self._index.list_news(tenant, since, _PAGE):
                done = [await self._tell(each) for each in found]
                if len(found) < _PAGE or not all(done):
                    break
        oldest = await self._deliveries.find_oldest() if any(self._subscribers.tenants()) else None
        began = self._clock.now() if oldest is None else datetime.fromisoformat(oldest.since)
        waited = (self._clock.now() - began).total_seconds()
        metrics.set_oldest_delivery(max(waited, 0.0))

    async def _tell_noticed(self) -> None:
        async with self._turn:  # whoever waits for it knows that what was noticed before is told
            while self._noticed:
                noticed = list(islice(self._noticed, _AT_A_TIME))
                for each in noticed:
                    del self._noticed[each]
                await asyncio.gather(*(self._look_at(*each) for each in noticed))

    async def _look_at(self, tenant: str, debate: str) -> None:
        record = await self._index.get(tenant, debate)
        if record is not None and record.news is not None:
            await self._tell(record)

    async def _tell(self, record: DebateRecord) -> bool:
        """Create the deliveries of what a debate's log has since hooks were told. Return whether the mark is gone."""
        with label_scope(tenant=record.tenant, debate=record.debate):
            try:
                told, found = await self._find_news(record)
                if found:
                    await self._create(record, found)
            except (CorruptEventError, StoreDamagedError) as corrupt:
                _logger.error("hooks cannot be told of a debate", error=str(corrupt))  # noqa: TRY400 - the message is enough
                told, found = record.told, []
            if found:
                self._wake_dispatcher()
            if await self._index.record_told(record, told):
                return True
            if found and await self._index.get(record.tenant, record.debate) is None:
                # it was deleted meanwhile
                await self._deliveries.delete_for_debate(record.tenant, record.debate)
            return False

    async def _find_news(self, record: DebateRecord) -> tuple[int, list[Envelope]]:
        """Return up to which sequence the log of a debate was read, and the events since `told` that hooks can be told of."""
        name, told, found = log_name(record.tenant, record.debate), record.told, []
        while True:
            records = await self._log.read(name, told, _LOG_PAGE)
            size = sum(len(entry) for each in records for entry in each.entries)
            found += await in_thread_if_large(size, partial(_list_events_with_news, records, told))
            told = records[-1].last if records else told
            if len(records) < _LOG_PAGE:
                return told, found

    async def _create(self, record: DebateRecord, events: Sequence[Envelope]) -> None:
        # Read after the log: a hook that was there before an event is found.
        hooks = await self._hooks.list_page(record.tenant)
        named = await self._list_named(record) if any(each.hook.named_only for each in hooks) else ()
        now = self._clock.now()
        for event in events:
            for kind in list_news(event):
                for each in hooks:
                    if _wants(each, kind, event, named):
                        delivery = create_delivery(
                            record.tenant, record.debate, each.hook.id, kind, event.sequence, now
                        )
                        await self._deliveries.add(delivery)

    async def _list_named(self, record: DebateRecord) -> Sequence[str]:
        """Return the ids of the hooks that a debate names."""
        records = await self._log.read(log_name(record.tenant, record.debate), 0, 1)
        first = open_entry(records[0].entries[0], None).payload if records else None
        return first.spec.hook_ids if isinstance(first, DebateCreated) else ()


def _list_events_with_news(records: Sequence[Record], after: int) -> list[Envelope]:
    entries = (
        entry
        for each in records
        for sequence, entry in enumerate(each.entries, start=each.first)
        if sequence > after
    )
    return [event for entry in entries if any(list_news(event := open_entry(entry, None)))]


def _wants(stored: StoredHook, kind: HookEvent.ValueType, event: Envelope, named: Sequence[str]) -> bool:
    hook = stored.hook
    if hook.named_only and hook.id not in named:
        return False
    return kind in hook.events and event.time >= time_of(hook.create_time)
