"""The memory service as a process."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from parley.memory.approvals import APPROVALS
from parley.memory.changes import CHANGES, SETTLEMENTS
from parley.memory.consolidation import LEASE_SECONDS, Consolidation
from parley.memory.debate import DEBATES, FILL_PROGRESS
from parley.memory.embedding import EmbeddingClient
from parley.memory.index import DebateIndex
from parley.memory.known_patterns import CONTRIBUTIONS, PATTERNS
from parley.memory.lease import LEASES, Lease
from parley.memory.memories import Memories
from parley.memory.moments import MOMENTS, Moments
from parley.memory.outbox import Outbox
from parley.memory.patterns import Patterns
from parley.memory.positions import Positions
from parley.memory.retention import Retention, end_effect
from parley.memory.servicer import MemoryServicer
from parley.memory.settings import MemorySettings
from parley.memory.stand_reader import StandReader
from parley.memory.stands import POSITIONS
from parley.memory.tiers import TIERS, Tiers
from parley.memory.tombstones import TOMBSTONES
from parley.memory.traces import TRACES, Traces
from parley.runtime import entry
from parley.runtime.channel import Connect, channel
from parley.runtime.clock import SystemClock
from parley.runtime.errors import ConfigurationError
from parley.runtime.logs import configure_logging
from parley.runtime.peers import watch_peers
from parley.runtime.server import Service, serve
from parley.runtime.tasks import background_task
from parley.runtime.telemetry import configure_telemetry
from parley.storage.opening import Store, lock_store, open_store, open_vectors, refuse_unusable_store
from parley.storage.ports import StorageError, Vectors
from parley.v1.memory_pb2_grpc import add_MemoryServiceServicer_to_server


@asynccontextmanager
async def build(settings: MemorySettings, *, connect: Connect = channel) -> AsyncIterator[Service]:
    """Open the service with its stores. The convergence service need not answer yet.

    `connect` opens the channel to it.

    Raises:
        ConfigurationError: PARLEY_STORE or PARLEY_VECTORS names no store, or one that cannot be used.
        PartFailedError: the index is not maintained any more; the block was cancelled.
    """
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        store = await _open_store(settings, stack)
        vectors = await _open_vectors(settings, stack)
        convergence = await stack.enter_async_context(connect(settings.convergence, settings.channels()))
        documents, alone, meanings = store.documents, store.exclusive, EmbeddingClient(convergence)
        index = DebateIndex(documents, vectors, meanings)
        traces, tiers, moments = Traces(documents, clock), Tiers(documents, clock), Moments(documents)
        patterns = Patterns(documents, meanings, alone=alone)
        positions = Positions(documents, meanings, StandReader(convergence), clock, alone=alone)
        outbox = Outbox(documents, [traces, tiers, index, patterns, positions, moments], clock)
        memories = Memories(documents, index, traces, tiers, meanings, outbox, clock, alone=alone)
        retentions = [
            Retention(settings.memory_decisions_days, tiers.list_old, memories.forget),
            Retention(settings.memory_patterns_days, patterns.list_old, end_effect(patterns)),
            Retention(settings.memory_positions_days, positions.list_old, end_effect(positions)),
            Retention(settings.memory_moments_days, moments.list_old, end_effect(moments)),
        ]
        lease = Lease(documents, "consolidation", LEASE_SECONDS, clock)
        consolidation = Consolidation(documents, tiers, memories, lease, clock, retentions)
        servicer = MemoryServicer(memories, patterns, positions, moments, settings.recall_floor_percent)
        await stack.enter_async_context(background_task("preparing memory's index", index.prepare(clock)))
        await stack.enter_async_context(background_task("building memory's index", index.run()))
        stack.push_async_callback(outbox.close)
        await stack.enter_async_context(background_task("finishing memory's records", outbox.run()))
        await stack.enter_async_context(background_task("consolidating memories", consolidation.run()))
        yield Service(
            "parley.v1.MemoryService",
            lambda server: add_MemoryServiceServicer_to_server(servicer, server),
            ready=partial(_ping_stores, store, vectors),
        )


async def _open_store(settings: MemorySettings, stack: AsyncExitStack) -> Store:
    with refuse_unusable_store():
        store = await stack.enter_async_context(
            open_store(settings.store, "memory", wrapping=settings.wrapping_keys())
        )
        await store.documents.prepare(
            DEBATES,
            FILL_PROGRESS,
            TRACES,
            TIERS,
            LEASES,
            CONTRIBUTIONS,
            PATTERNS,
            POSITIONS,
            CHANGES,
            SETTLEMENTS,
            MOMENTS,
            TOMBSTONES,
            APPROVALS,
        )
    return store


async def _open_vectors(settings: MemorySettings, stack: AsyncExitStack) -> Vectors:
    key = settings.vectors_api_key
    try:
        return await stack.enter_async_context(
            open_vectors(
                settings.vectors, api_key=key.get_secret_value() if key else None, ca=settings.vectors_ca
            )
        )
    except (ValueError, StorageError) as error:
        raise ConfigurationError(str(error)) from None


async def _ping_stores(store: Store, vectors: Vectors) -> None:
    """Return if both stores answer: without its index memory can neither recall nor record."""
    await store.ping()
    await vectors.ping()


async def main() -> None:
    """Serve until stopped."""
    settings = MemorySettings.load()
    configure_logging(settings.log_level)
    stop_telemetry = configure_telemetry("parley-memory")
    try:
        with lock_store(settings.require_store(), "memory", alone=True):
            async with (
                watch_peers({"PARLEY_CONVERGENCE": settings.convergence}, settings.channels()),
                build(settings) as service,
            ):
                await serve([service], settings.server())
    finally:
        stop_telemetry()


if __name__ == "__main__":
    sys.exit(entry.run(main))
