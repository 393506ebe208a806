"""Sends deliveries as they are due: one replica at a time each, in order for each hook and debate, and no receiver holds up another.

A delivery that a replica has taken is due again when its lease ends: the end of a replica costs a minute, and no delivery.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from parley.orchestrator import metrics
from parley.orchestrator.delivery.deliveries import DEAD, DELIVERED, DeliveryStore, StoredDelivery
from parley.orchestrator.delivery.hooks import UNREADABLE, HookStore, StoredHook
from parley.orchestrator.delivery.message import DeliveryError, Message
from parley.orchestrator.delivery.news import NewsWriter
from parley.orchestrator.delivery.sender import Sender
from parley.orchestrator.delivery.subscribers import Subscribers
from parley.orchestrator.model.short_text import to_line
from parley.orchestrator.model.times import time_text
from parley.runtime.backoff import Backoff
from parley.runtime.clock import Clock, wait_or_timeout
from parley.runtime.labels import label_scope
from parley.runtime.logs import get_logger
from parley.runtime.unreadable import UnreadableError
from parley.storage.ports import StorageError

_BACKOFF: Final = Backoff(first=5.0, maximum=4 * 3600.0, factor=4.0, jitter=0.2)
"""About ten tries in a day: after seconds, minutes, then every few hours."""
_TRIED_FOR: Final = timedelta(days=1)
"""A delivery that would be tried later than that is a dead letter."""
_MIN_TRIES: Final = 5
"""Before that, it is none for its age: the clock was set forward, or nothing ran for a day."""
_MAX_TRIES: Final = 20
"""More than the pauses leave room for in a day: the process ended during most of them."""
_LEASE: Final = timedelta(seconds=60)
"""How long a delivery is its replica's: longer than a try."""
_POLL_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.02
_PAGE: Final = 100
_MAX_ERROR: Final = 300

_logger = get_logger(__name__)


OF_HOOK: Final = 8
"""Deliveries to one hook that a replica sends at a time."""
OF_TENANT: Final = 32
"""The same of one tenant. A hook to which nothing is sent may have one more, so that slow receivers hold up none of the tenant's others."""
_OF_ALL: Final = 256


class Dispatcher:
    """Sends the deliveries of all tenants."""

    def __init__(
        self,
        deliveries: DeliveryStore,
        hooks: HookStore,
        subscribers: Subscribers,
        news: NewsWriter,
        sender: Sender,
        clock: Clock,
    ) -> None:
        """Send nothing yet: see `run`."""
        self._deliveries = deliveries
        self._hooks = hooks
        self._subscribers = subscribers
        self._news = news
        self._sender = sender
        self._clock = clock
        self._wake = asyncio.Event()
        self._lanes: set[str] = set()
        self._sending: Counter[str] = Counter()
        self._lacks_room = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being sent."""
        return not self._lanes

    def wake(self) -> None:
        """Look now for what is due."""
        self._wake.set()

    async def run(self) -> None:
        """Send what is due, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    await self._start_due(tasks)
                except StorageError as error:
                    _logger.warning("store unavailable; deliveries are sent later", error=str(error))
                except Exception:
                    # What cannot be read must not end the orchestrator.
                    _logger.exception("deliveries could not be looked for; trying again soon")
                await wait_or_timeout(self._wake, self._clock, _POLL_SECONDS)
                self._wake.clear()

    async def finish(self) -> None:
        """Wait until nothing is being sent, or due to be sent, while `run` runs. May raise StorageError."""
        while not self.is_idle or await self._deliveries.list_due(self._clock.now(), 1):
            self.wake()
            await self._clock.sleep(_LOOK_SECONDS)

    async def _start_due(self, tasks: asyncio.TaskGroup) -> None:
        """Start to send what is due and within the bounds."""
        await self._subscribers.refresh()
        if not any(self._subscribers.tenants()):
            return  # a delivery without a hook is not sent
        self._lacks_room = False
        async for delivery in self._list_due():
            if self._has_room(delivery):
                self._count(delivery, 1)
                tasks.create_task(self._deliver(delivery))
            else:
                self._lacks_room = True

    async def _list_due(self) -> AsyncIterator[StoredDelivery]:
        """Yield what is due: all, or, if that is much, some of each hook, so that those of one do not hide the others."""
        now = self._clock.now()
        found = await self._deliveries.list_due(now, _PAGE)
        for each in found:
            yield each
        if len(found) < _PAGE:
            return
        for hook in list(self._subscribers.hook_ids()):
            free = OF_HOOK - self._sending[hook]
            for each in await self._deliveries.list_due_of(hook, now, 2 * OF_HOOK) if free > 0 else ():
                yield each

    def _has_room(self, delivery: StoredDelivery) -> bool:
        return (
            delivery.lane not in self._lanes
            and self._sending[delivery.hook] < OF_HOOK
            and (self._sending[_of_tenant(delivery)] < OF_TENANT or not self._sending[delivery.hook])
            and len(self._lanes) < _OF_ALL
        )

    def _count(self, delivery: StoredDelivery, number: int) -> None:
        if number > 0:
            self._lanes.add(delivery.lane)
        else:
            self._lanes.discard(delivery.lane)
        for name in (delivery.hook, _of_tenant(delivery)):
            self._sending[name] += number
            if not self._sending[name]:
                del self._sending[name]

    async def _deliver(self, delivery: StoredDelivery) -> None:
        """Send one delivery, unless it has to wait for another one."""
        try:
            with label_scope(tenant=delivery.tenant, debate=delivery.debate):
                await self._try(delivery)
        except StorageError as error:
            _logger.warning(
                "store unavailable; a delivery is sent later", delivery=delivery.id, error=str(error)
            )
        except Exception:
            # One delivery must not end the others, whatever is wrong with it. It is due again when its lease ends.
            _logger.exception("a delivery failed; it is sent later", delivery=delivery.id)
        finally:
            self._count(delivery, -1)
            if self._lacks_room:
                self.wake()

    async def _try(self, delivery: StoredDelivery) -> None:
        now = self._clock.now()
        first = await self._deliveries.find_first(delivery.lane)
        if first is None:
            return  # it has ended since
        if first.id != delivery.id:
            soon = time_text(now + timedelta(seconds=_POLL_SECONDS))
            await self._deliveries.set_due(delivery, max(first.due or "", soon))
            return
        if first.tries != delivery.tries or not await self._deliveries.claim(first, now + _LEASE):
            return  # another replica sends it
        await self._send(first, now)
        await self._promote(first.lane)

    async def _send(self, claimed: StoredDelivery, now: datetime) -> None:
        """Send a delivery, and record what came of it."""
        stored = None
        try:
            _refuse_endless(claimed)
            stored = await self._find_hook(claimed)
            message = await self._write(claimed) if stored is not None else None
            if stored is None or message is None:
                await self._deliveries.delete(claimed.id)  # the hook is gone, or the debate
            else:
                _refuse_paused(stored)
                await self._sender.send(stored.receiver(now), message)
                await self._record_success(claimed)
        except DeliveryError as error:
            await self._record_failure(claimed, stored, error)

    async def _find_hook(self, delivery: StoredDelivery) -> StoredHook | None:
        """Return the hook of a delivery; None if it is gone. Raise DeliveryError if it cannot be read."""
        try:
            return await self._hooks.get(delivery.tenant, delivery.hook)
        except UnreadableError:
            raise DeliveryError(UNREADABLE, permanent=True) from None

    async def _write(self, delivery: StoredDelivery) -> Message | None:
        """Return what is sent for a delivery, as `NewsWriter.write` does; a fault of ours is a DeliveryError, which ends after a day."""
        try:
            return await self._news.write(delivery)
        except (DeliveryError, StorageError):
            raise
        except Exception as error:
            _logger.exception("a delivery could not be written", delivery=delivery.id)
            raise DeliveryError(f"internal error: {type(error).__name__}") from error

    async def _record_success(self, delivery: StoredDelivery) -> None:
        metrics.count_delivery("delivered")
        await self._deliveries.record_end(delivery, DELIVERED, self._clock.now())

    async def _record_failure(
        self, delivery: StoredDelivery, stored: StoredHook | None, error: DeliveryError
    ) -> None:
        now, text = self._clock.now(), to_line(str(error), _MAX_ERROR)
        pause = max(next(islice(_BACKOFF.pauses(), delivery.tries, None)), error.retry_after or 0.0)
        due = now + min(timedelta(seconds=pause), 2 * _TRIED_FOR)
        is_old = due > datetime.fromisoformat(delivery.since) + _TRIED_FOR
        is_dead = error.permanent or pause > _TRIED_FOR.total_seconds() or delivery.tries >= _MAX_TRIES
        is_dead = is_dead or (is_old and delivery.tries + 1 >= _MIN_TRIES)
        metrics.count_delivery("dead" if is_dead else "failed")
        _logger.info("a delivery failed", delivery=delivery.id, hook=delivery.hook, dead=is_dead, error=text)
        if error.permanent and stored is not None and not stored.hook.paused:
            await self._hooks.set_paused(delivery.hook, text)
        if is_dead:
            await self._deliveries.record_end(delivery, DEAD, now, text)
        else:
            await self._deliveries.record_failure(delivery, text, due)

    async def _promote(self, lane: str) -> None:
        """Let the next delivery of a lane go at once, if it has only waited for the one before."""
        following = await self._deliveries.find_first(lane)
        if following is not None and not following.tries:
            await self._deliveries.set_due(following, time_text(self._clock.now()))
            self.wake()


def _of_tenant(delivery: StoredDelivery) -> str:
    return f"tenant/{delivery.tenant}"


def _refuse_endless(claimed: StoredDelivery) -> None:
    if claimed.tries >= _MAX_TRIES:
        raise DeliveryError(
            f"given up: most of its {claimed.tries} tries did not end, as if each had ended the process"
        )


def _refuse_paused(stored: StoredHook) -> None:
    if stored.hook.paused:
        raise DeliveryError(f"the hook is paused: {stored.hook.paused}", permanent=True)
