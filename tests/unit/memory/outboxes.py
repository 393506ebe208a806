"""Processes of the memory whose writes are counted and may stop, over one folder."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from parley.memory.approvals import APPROVALS
from parley.memory.debate import (
    DEBATES,
    FILL_PROGRESS,
    FORGETTING,
    RECORDING,
    storage_key,
)
from parley.memory.embedding import Embedding, EmbeddingClient
from parley.memory.index import DebateIndex
from parley.memory.memories import Memories
from parley.memory.outbox import Outbox
from parley.memory.stored_vectors import to_vector
from parley.memory.tiers import TIERS, Tiers
from parley.memory.tombstones import TOMBSTONES
from parley.memory.traces import TRACES, Traces
from parley.memory.writing import Write, write_together
from parley.runtime.clock import Clock, SystemClock
from parley.storage.opening import open_store, open_vectors
from parley.storage.ports import (
    Documents,
    StoreUnavailableError,
    VectorCollection,
    Vectors,
)
from parley.v1.memory_pb2 import RecordDebateRequest
from tests.support.stopping_stores import StoppingDocuments, StoppingVectors, Writes

COLLECTION = VectorCollection("debates-one", 2, ("tenant", "domain"))


KEY = storage_key("acme", "deb-1")


class OneMeaning(EmbeddingClient):
    """Embeds every text alike."""

    def __init__(self) -> None:
        """Need no channel."""

    async def embed(self, *texts: str) -> list[Embedding]:
        return [Embedding(to_vector([1.0, 0.0]), "one") for _ in texts]


@dataclass
class Ledger:
    """An effect that keeps what it is given by tenant and debate; `refused` debates are not taken now."""

    kept: dict[tuple[str, str], RecordDebateRequest] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    waits: asyncio.Event | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def apply(self, tenant: str, record: RecordDebateRequest, write: Write = write_together) -> None:
        await write(self._keep(tenant, record))

    async def _keep(self, tenant: str, record: RecordDebateRequest) -> None:
        self.asked.set()
        if self.waits:
            await self.waits.wait()
        if record.debate.debate_id in self.refused:
            raise StoreUnavailableError("not now")
        self.kept[tenant, record.debate.debate_id] = record

    async def remove(self, tenant: str, record: RecordDebateRequest) -> None:
        self.asked.set()
        if self.waits:
            await self.waits.wait()
        self.kept.pop((tenant, record.debate.debate_id), None)


@dataclass(frozen=True)
class Process:
    """One process's memories on stores that outlive it."""

    documents: Documents
    vectors: Vectors
    ledger: Ledger
    clock: Clock = field(default_factory=SystemClock)
    alone: bool = False

    @cached_property
    def index(self) -> DebateIndex:
        return DebateIndex(self.documents, self.vectors, OneMeaning())

    @property
    def tiers(self) -> Tiers:
        return Tiers(self.documents, self.clock)

    @cached_property
    def outbox(self) -> Outbox:
        return Outbox(
            self.documents,
            [Traces(self.documents, self.clock), self.tiers, self.index, self.ledger],
            self.clock,
        )

    @property
    def memories(self) -> Memories:
        traces = Traces(self.documents, self.clock)
        return Memories(
            self.documents,
            self.index,
            traces,
            self.tiers,
            OneMeaning(),
            self.outbox,
            self.clock,
            alone=self.alone,
        )

    def stopping(self, writes: Writes) -> "Process":
        return Process(
            StoppingDocuments(self.documents, writes),
            StoppingVectors(self.vectors, writes),
            self.ledger,
            self.clock,
        )

    async def record_to_the_end(self, record: RecordDebateRequest) -> None:
        """Record a debate, and end."""
        await self.memories.record("acme", record)
        await self.outbox.close()

    async def recalled(self, tenant: str = "acme") -> list[str]:
        found = self.memories.recall(tenant, "later", domain="", excluded=(), limit=100, floor=0.1)
        return [each.debate_id async for each in found]

    async def unfinished(self) -> int:
        marked = [
            await self.documents.find(DEBATES, {"unfinished": mark}) for mark in (RECORDING, FORGETTING)
        ]
        return sum(map(len, marked))

    async def is_whole(self, expected: Sequence[str], tenant: str = "acme") -> None:
        """End what this process has applied, and check that exactly these debates are there, with each effect once."""
        await self.outbox.close()
        found = await self.documents.find(DEBATES, {})
        assert [each.key for each in found] == [storage_key(tenant, each) for each in expected]
        assert await self.unfinished() == 0
        assert len(await self.documents.find(TRACES, {})) == len(expected)
        assert len(await self.documents.find(TIERS, {})) == len(expected)
        await self.vectors.prepare(COLLECTION)
        assert await self.vectors.count(COLLECTION) == len(expected)
        assert sorted(self.ledger.kept) == [(tenant, each) for each in expected]


@asynccontextmanager
async def open_process(folder: Path) -> AsyncIterator[Process]:
    async with (
        open_store(f"sqlite:///{folder / 'store'}", "memory") as store,
        open_vectors(f"edge:{folder / 'vectors'}") as vectors,
    ):
        await store.documents.prepare(DEBATES, FILL_PROGRESS, TRACES, TIERS, TOMBSTONES, APPROVALS)
        yield Process(store.documents, vectors, Ledger())


RECORD_WRITES = ["insert", "insert trace", "insert tier", "upsert", "update"]
