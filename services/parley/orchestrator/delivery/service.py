"""All parts of delivery in one replica, put together."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Final

from msgspec import Struct

from parley.orchestrator.delivery.answers import RememberedAnswers
from parley.orchestrator.delivery.deliveries import DeliveryStore
from parley.orchestrator.delivery.dispatcher import Dispatcher
from parley.orchestrator.delivery.hooks import HookStore
from parley.orchestrator.delivery.links import LinkRules, LinkWriter
from parley.orchestrator.delivery.message import CreateChannel
from parley.orchestrator.delivery.news import NewsWriter, WriteAnswer
from parley.orchestrator.delivery.outbox import Outbox
from parley.orchestrator.delivery.sender import Sender
from parley.orchestrator.delivery.subscribers import Subscribers
from parley.orchestrator.delivery.tenant_hooks import TenantHooks
from parley.orchestrator.log.index import DebateIndex
from parley.runtime.clock import Clock
from parley.storage.ports import Documents, Log

_FINISH_SECONDS: Final = 3.0


class DeliveryService(Struct, frozen=True):
    """Delivery in one replica: hooks for administrators, and what runs behind them."""

    hooks: TenantHooks
    outbox: Outbox
    dispatcher: Dispatcher

    async def run(self) -> None:
        """Create deliveries and send them, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.outbox.run())
            tasks.create_task(self.dispatcher.run())

    async def finish(self) -> None:
        """Send what is noticed and due, while `run` runs, so that the end of a command on one's own machine cuts off nothing.

        After a few seconds it gives up: what is left is sent by the next process. May raise StorageError.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_FINISH_SECONDS):
                await self.outbox.finish()
                await self.dispatcher.finish()


def create_service(
    documents: Documents,
    log: Log,
    index: DebateIndex,
    clock: Clock,
    *,
    create_channel: CreateChannel,
    write_answer: WriteAnswer,
    links: LinkRules,
    kept_for: timedelta,
) -> DeliveryService:
    """Create delivery for a replica whose debates are in this index, which tells it of news from now on."""
    write_answer = RememberedAnswers(write_answer, index).write
    hooks, deliveries, sender = HookStore(documents), DeliveryStore(documents), Sender(create_channel)
    subscribers = Subscribers(hooks, clock)
    news = NewsWriter(log, write_answer, links.public_url, LinkWriter(hooks, links).write)
    dispatcher = Dispatcher(deliveries, hooks, subscribers, news, sender, clock)
    outbox = Outbox(
        log,
        index,
        hooks,
        deliveries,
        subscribers,
        clock,
        wake_dispatcher=dispatcher.wake,
        kept_for=kept_for,
    )
    index.notice = outbox.notice
    return DeliveryService(
        TenantHooks(hooks, deliveries, sender, clock, outbox.notice_hooks), outbox, dispatcher
    )
