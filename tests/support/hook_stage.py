"""Hooks of a tenant before receivers that a test scripts: debates are written by hand, replicas of delivery run on one store."""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from google.protobuf.message import Message as Payload

from parley.orchestrator.delivery.deliveries import DELIVERIES, DeliveryStore, StoredDelivery
from parley.orchestrator.delivery.hooks import HOOKS
from parley.orchestrator.delivery.links import LinkRules
from parley.orchestrator.delivery.message import Channel, Message, Receiver
from parley.orchestrator.delivery.news import WriteAnswer
from parley.orchestrator.delivery.service import DeliveryService, create_service
from parley.orchestrator.log.debate_record import COMPLETED, DebateRecord
from parley.orchestrator.log.envelope import GENESIS, create_event, seal
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.orchestrator.log.reading import log_name
from parley.orchestrator.model.times import time_text
from parley.runtime.clock import Clock
from parley.runtime.errors import not_found
from parley.storage.encryption.wrapping import NO_KEYS, WrappingKeys
from parley.storage.opening import Store, open_store
from parley.storage.ports import Documents, Log, Record
from parley.v1.debate_pb2 import DebateSpec, Outcome
from parley.v1.event_pb2 import Concluded, DebateCreated
from parley.v1.hook_pb2 import (
    HOOK_EVENT_CONCLUDED,
    CreateHookRequest,
    Hook,
    HookEvent,
    HookTarget,
    StdoutTarget,
)
from tests.support.debate_records import create_record
from tests.support.orchestration import until

TENANT: Final = "default"
KEPT_FOR: Final = timedelta(days=14)
Behave = Callable[[Message], Awaitable[None]]


def make_created(question: str = "Is water wet?", hook_ids: Sequence[str] = ()) -> DebateCreated:
    """The first event of a debate."""
    spec = DebateSpec(question=question, format="panel@1", labels={"team": "payments"}, hook_ids=hook_ids)
    return DebateCreated(spec=spec)


def make_concluded(answer: str = "Yes.") -> Concluded:
    """The last word of a debate."""
    return Concluded(outcome=Outcome(description=answer))


@dataclass
class HookStage:
    """A store and what receivers got, by hook.

    `behave` says how a receiver takes a message: it may raise DeliveryError, or wait. `deleted` are debates of which only the log is left,
    `write_answer` writes answers in place of short ones.
    """

    store: Store
    clock: Clock
    got: dict[str, list[Message]] = field(default_factory=lambda: defaultdict(list))
    behave: dict[str, Behave] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    write_answer: WriteAnswer | None = None

    def __post_init__(self) -> None:
        self.index = DebateIndex(self.store.documents)
        """That of the owners of debates; the first replica that runs hears of what is written."""

    async def prepare(self) -> None:
        await self.store.documents.prepare(DEBATES, HOOKS, DELIVERIES)

    @property
    def deliveries(self) -> DeliveryStore:
        return DeliveryStore(self.store.documents)

    def replica(
        self,
        documents: Documents | None = None,
        log: Log | None = None,
        index: DebateIndex | None = None,
    ) -> DeliveryService:
        """Delivery of one replica, which does nothing until it runs."""
        documents, log = documents or self.store.documents, log or self.store.log
        return create_service(
            documents,
            log,
            index or DebateIndex(documents),
            self.clock,
            create_channel=self._channel,
            write_answer=self.write_answer or self._write_answer,
            links=LinkRules("https://parley.example"),
            kept_for=KEPT_FOR,
        )

    @asynccontextmanager
    async def running(self, count: int = 1) -> AsyncIterator[Sequence[DeliveryService]]:
        """Run so many replicas in the block. They end as a kill ends them."""
        replicas = [self.replica(index=None if number else self.index) for number in range(count)]
        tasks = [asyncio.create_task(each.run()) for each in replicas]
        try:
            yield replicas
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @asynccontextmanager
    async def running_on(self, log: Log) -> AsyncIterator[DeliveryService]:
        """Run one replica in the block, which reads logs through this one."""
        replica = self.replica(log=log)
        task = asyncio.create_task(replica.run())
        try:
            yield replica
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def add_hook(
        self,
        *events: HookEvent.ValueType,
        tenant: str = TENANT,
        named_only: bool = False,
        behave: Behave | None = None,
    ) -> str:
        """Create a hook and return its id."""
        request = CreateHookRequest(
            request_id=uuid.uuid4().hex,
            name="a receiver",
            target=HookTarget(stdout=StdoutTarget()),
            events=events or (HOOK_EVENT_CONCLUDED,),
            named_only=named_only,
        )
        hook, _ = await self.replica().hooks.create(tenant, request, "ada")
        if behave is not None:
            self.behave[hook.id] = behave
        return hook.id

    async def hook(self, hook_id: str) -> Hook:
        return (await self.replica().hooks.get(TENANT, hook_id)).hook

    async def add_debate(
        self,
        debate: str,
        *payloads: Payload,
        tenant: str = TENANT,
        status: str = COMPLETED,
        is_marked: bool = True,
    ) -> DebateRecord:
        """Write a debate whose log has these events after its first one, and if it `is_marked` its status, as its owner does."""
        record = create_record(tenant, debate, self.clock.now(), status, open=False, epoch=1)
        await self.index.insert(record)
        first = payloads[0] if payloads and isinstance(payloads[0], DebateCreated) else None
        await self.append(record, *(() if first else (make_created(),)), *payloads)
        if is_marked:
            await self.extend(record, status=status)
        return record

    async def extend(self, record: DebateRecord, *payloads: Payload, status: str = COMPLETED) -> None:
        """Write more events of a debate, and its status."""
        await self.append(record, *payloads)
        updated = time_text(self.clock.now())
        planned = self.index.plan_status(record, 1, status=status, is_open=False, owner=None, updated=updated)
        assert await self.index.write(planned)

    async def append(self, record: DebateRecord, *payloads: Payload) -> None:
        """Write more events of a debate."""
        name = log_name(record.tenant, record.debate)
        stored = await self.store.log.read(name)
        last = stored[-1].last if stored else 0
        before, entries = stored[-1].entries[-1][-32:] if stored else GENESIS, []
        for sequence, payload in enumerate(payloads, start=last + 1):
            key = f"k/{sequence}"
            event = seal(
                create_event(key, payload),
                tenant=record.tenant,
                debate=record.debate,
                sequence=sequence,
                epoch=1,
                time=self.clock.now(),
                before=before,
            )
            before = event.hash
            entries.append(event.entry)
        if entries:
            await self.store.log.append(name, Record(last + 1, uuid.uuid4().hex, tuple(entries)))

    async def got_by(self, hook: str, count: int) -> list[Message]:
        """Wait until a receiver has got so many messages."""

        async def there() -> bool:
            return len(self.got[hook]) >= count

        await until(there, f"{hook} gets {count}")
        return self.got[hook]

    async def comes_to(self, state: str, count: int = 1, tenant: str = TENANT) -> Sequence[StoredDelivery]:
        """Wait until so many deliveries are in a state, and return them, newest first."""

        async def there() -> Sequence[StoredDelivery]:
            found = await self.deliveries.list_page(tenant, "", max(count, 10), state=state)
            return found if len(found) >= count else ()

        found: Sequence[StoredDelivery] = await until(there, f"{count} deliveries {state}")
        return found

    def _channel(self, receiver: Receiver) -> Channel:
        return _ScriptedChannel(self, receiver)

    async def _write_answer(self, _tenant: str, debate: str) -> str:
        if debate in self.deleted:
            raise not_found("debate", debate)
        return f"The answer of {debate}."


@dataclass(frozen=True, slots=True)
class _ScriptedChannel:
    stage: HookStage
    receiver: Receiver

    async def send(self, message: Message) -> None:
        behave = self.stage.behave.get(self.receiver.hook.id)
        if behave is not None:
            await behave(message)
        self.stage.got[self.receiver.hook.id].append(message)


@asynccontextmanager
async def open_hook_stage(
    folder: Path, clock: Clock, wrapping: WrappingKeys = NO_KEYS
) -> AsyncIterator[HookStage]:
    """Open a stage on a store in a folder."""
    async with open_store(
        f"sqlite:///{folder}", "orchestrator", wrapping=wrapping, poll_interval=0.02
    ) as store:
        stage = HookStage(store, clock)
        await stage.prepare()
        yield stage
