"""Text of steps in flight: passed to this replica's watchers, and fetched from the replica that runs the debate.

The text is not part of any log. A replica opens one stream a debate to the owner, however many watchers it has here. Forwarded text
is never forwarded again: only an owner sends text to another replica. Without text, a watch goes on.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import Context

import grpc
from msgspec import Struct, field

from parley.orchestrator.log.debate_record import DebateRecord, record_key
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.watch.feed import Feed, Feeds
from parley.orchestrator.watch.live_text import LiveText, TextListener
from parley.runtime.backoff import Backoff
from parley.runtime.channel import channel
from parley.runtime.labels import label_scope
from parley.runtime.logs import get_logger
from parley.runtime.tasks import stop_task
from parley.runtime.wake_queue import WakeGroup, WakeQueues
from parley.storage.ports import StorageError
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from parley.v1.orchestrator_pb2 import StepDelta


class _SharedText(Struct, frozen=True):
    wake_group: WakeGroup
    text: LiveText = field(default_factory=LiveText)


class DeltaBroker:
    """Passes the text of each debate to its listeners.

    Attributes:
        wake_queues: They are woken through these.
    """

    def __init__(self) -> None:
        """Start without listeners."""
        self._texts: dict[str, _SharedText] = {}
        self.wake_queues = WakeQueues()

    def publish(self, debate: str, delta: StepDelta) -> None:
        """Pass a piece of text to all listeners. A slow listener misses older pieces, which it sees by their offsets."""
        shared = self._texts.get(debate)
        if shared is not None:
            shared.text.append(delta)
            shared.wake_group.notify()

    @contextmanager
    def listen(self, tenant: str, debate: str, news: asyncio.Event) -> Generator[TextListener, None, None]:
        """Listen to the text of a tenant's debate while the block runs. `news` is set if there is some."""
        shared = self._texts.get(debate)
        if shared is None:
            shared = self._texts[debate] = _SharedText(WakeGroup(self.wake_queues.for_tenant(tenant)))
        listener = TextListener(shared.text)
        shared.text.listeners.add(listener)
        shared.wake_group.add(news)
        try:
            yield listener
        finally:
            shared.text.listeners.remove(listener)
            shared.wake_group.remove(news)
            if not shared.text.listeners:
                del self._texts[debate]


OWNER_KEY = "parley-owner"
"""Metadata of a watch between replicas: the owner that it is for. That owner sends text only, and asks no other replica."""
_BACKOFF = Backoff(first=0.1, maximum=5.0)

_logger = get_logger(__name__)


class _Forward(Struct):
    task: asyncio.Task[None]
    watchers: int = 0


class _SharedChannel(Struct):
    channel: grpc.aio.Channel
    users: int = 0


class DeltaForwarder:
    """Fetches text of debates that other replicas run, while a watcher here needs it."""

    def __init__(
        self,
        index: DebateIndex,
        feeds: Feeds,
        deltas: DeltaBroker,
        owner: str,
        connect: Callable[[str], grpc.aio.Channel] = channel,
    ) -> None:
        """Publish the text of other owners to `deltas`. `owner` is the name of this replica; `connect` opens a channel."""
        self._index = index
        self._feeds = feeds
        self._deltas = deltas
        self._owner = owner
        self._connect = connect
        self._forwards: dict[str, _Forward] = {}
        self._channels: dict[str, _SharedChannel] = {}

    @asynccontextmanager
    async def forward_while_watched(self, tenant: str, debate: str) -> AsyncGenerator[None, None]:
        """Fetch a debate's text while the block runs. Never fails: at worst there is no text."""
        key = record_key(tenant, debate)
        if key not in self._forwards:
            # A new context: the deadline and the span of the first watcher must not apply to the others.
            task = asyncio.create_task(self._forward(tenant, debate), context=Context())
            self._forwards[key] = _Forward(task)
        forward = self._forwards[key]
        forward.watchers += 1
        try:
            yield
        finally:
            forward.watchers -= 1
            if not forward.watchers:
                del self._forwards[key]
                await stop_task(forward.task)

    async def _forward(self, tenant: str, debate: str) -> None:
        news = asyncio.Event()
        with label_scope(tenant=tenant, debate=debate):
            while True:
                async with self._feeds.join(tenant, debate, news) as feed:
                    await self._forward_from_owner(feed, tenant, debate, news)
                await asyncio.sleep(_BACKOFF.maximum)

    async def _forward_from_owner(self, feed: Feed, tenant: str, debate: str, news: asyncio.Event) -> None:
        """Copy text from the present owner, and from each later owner, as long as the log can be read."""
        pauses = _BACKOFF.pauses()
        while feed.failure is None:
            epoch = feed.epoch
            record = await self._get_record(tenant, debate)
            if record is not None and record.epoch >= epoch:
                epoch = record.epoch
                if record.owner in (None, self._owner) or not record.address:
                    await _wait_for_claim(epoch, feed, news, seconds=_BACKOFF.maximum)
                else:
                    await self._copy_until_claimed(record, feed, news)
            if feed.epoch > epoch:
                pauses = _BACKOFF.pauses()
            await asyncio.sleep(next(pauses))

    async def _get_record(self, tenant: str, debate: str) -> DebateRecord | None:
        with suppress(StorageError):  # the log reports that to the watchers
            return await self._index.get(tenant, debate)
        return None

    async def _copy_until_claimed(self, record: DebateRecord, feed: Feed, news: asyncio.Event) -> None:
        """Copy text from the owner in a record until another one claims, or the stream ends."""
        copying = asyncio.create_task(self._copy(record))
        copying.add_done_callback(lambda _: news.set())
        try:
            await _wait_for_claim(record.epoch, feed, news, unless=copying)
        finally:
            await stop_task(copying)

    async def _copy(self, record: DebateRecord) -> None:
        request = orchestrator_pb2.WatchDebateRequest(debate_id=record.debate, text_deltas=True)
        metadata = ((OWNER_KEY, record.owner or ""),)
        try:
            async with self._share_channel(record.address) as connection:
                stub = orchestrator_pb2_grpc.OrchestratorServiceStub(connection)
                async for message in stub.WatchDebate(request, metadata=metadata):
                    if message.HasField("delta"):
                        self._deltas.publish(record.debate, message.delta)
        except grpc.aio.AioRpcError as error:
            _logger.debug("no text from the owner", address=record.address, error=error.details())

    @asynccontextmanager
    async def _share_channel(self, address: str) -> AsyncGenerator[grpc.aio.Channel, None]:
        """Share one channel to an address. The last user closes it."""
        shared = self._channels.get(address)
        if shared is None:
            shared = self._channels[address] = _SharedChannel(self._connect(address))
        shared.users += 1
        try:
            yield shared.channel
        finally:
            shared.users -= 1
            if not shared.users:
                del self._channels[address]
                await shared.channel.close()


async def _wait_for_claim(
    epoch: int,
    feed: Feed,
    news: asyncio.Event,
    *,
    seconds: float | None = None,
    unless: asyncio.Task[None] | None = None,
) -> None:
    """Return once the log has a later claim or cannot be read, after `seconds`, or once the task `unless` is done."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while feed.epoch <= epoch and feed.failure is None and not (unless and unless.done()):
                news.clear()
                await news.wait()
