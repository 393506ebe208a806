"""Recall over gRPC at 1,000, 10,000 and 100,000 memories: p50, p99, memory, start-up, and making the index again.

It says too how late a task on the event loop of the service and its client is that asks to be woken every millisecond, and how late
one in a process that does nothing else at the same time: so much of it is the machine's.
"""

import asyncio
import resource
import shutil
import tempfile
import time
from asyncio import events
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import quantiles
from typing import Final

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp

from parley.convergence.agreement import Agreements
from parley.convergence.embeddings import open_embeddings
from parley.convergence.servicer import ConvergenceServicer
from parley.memory.__main__ import build
from parley.memory.debate import DEBATES, FILL_PROGRESS, point_id, storage_key, to_fields
from parley.memory.embedding import Embedding
from parley.memory.settings import MemorySettings
from parley.memory.tiers import TIERS, Tiers
from parley.memory.traces import TRACES, Traces
from parley.memory.writing import write_together
from parley.runtime.channel import channel
from parley.runtime.clock import SystemClock
from parley.runtime.entry import return_large_blocks, tune_gc_and_threads
from parley.runtime.server import Service, start_server
from parley.runtime.tasks import background_task
from parley.storage.opening import open_store, open_vectors
from parley.storage.ports import Documents, Point, VectorCollection
from parley.v1 import memory_pb2 as pb
from parley.v1.convergence_pb2_grpc import add_ConvergenceServiceServicer_to_server
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from tests.bench.figures import main, table
from tests.support.hash_embedder import HashEmbedder
from tests.support.word_agreement import WordAgreement

SIZE: Final = 384
PART: Final = 500
EMBEDDER: Final = HashEmbedder("hash-384", SIZE)
COLLECTION: Final = VectorCollection("debates-hash-384", SIZE, ("tenant", "domain"))
CONCLUSION: Final = (
    "Use a log that can be replayed, keep it for thirty days, and measure again in spring. " * 12
)
WHEN: Final = Timestamp(seconds=1_780_000_000)


def settings(folder: Path, address: str = "") -> MemorySettings:
    """The memory service on a folder."""
    return MemorySettings(
        store=f"sqlite:///{folder / 'store'}", vectors=f"edge:{folder / 'vectors'}", convergence=address
    )


async def fill(folder: Path, memories: int) -> None:
    """Write memories of one tenant to both stores, without embedding them one by one."""
    dice = np.random.default_rng(7)
    chosen = settings(folder)
    async with open_store(chosen.store, "memory") as store, open_vectors(chosen.vectors) as vectors:
        await store.documents.prepare(DEBATES, TRACES, TIERS)
        effects = Traces(store.documents, SystemClock()), Tiers(store.documents, SystemClock())
        await vectors.prepare(COLLECTION)
        for start in range(0, memories, PART):
            points, writes = [], []
            for number in range(start, min(start + PART, memories)):
                vector = dice.standard_normal(SIZE).astype(np.float32)
                vector /= np.linalg.norm(vector)
                debate = pb.PastDebate(
                    debate_id=f"deb-{number}",
                    question=f"Question {number}?",
                    conclusion=CONCLUSION,
                    domain="general",
                    concluded_at=WHEN,
                )
                key = storage_key("default", debate.debate_id)
                record = pb.RecordDebateRequest(debate=debate)
                fields = to_fields("default", record, Embedding(vector, EMBEDDER.name))
                writes.append(store.documents.insert(DEBATES, key, fields))
                writes += [each.apply("default", record, write_together) for each in effects]
                points.append(
                    Point(
                        point_id(key), vector.tolist(), {"key": key, "tenant": "default", "domain": "general"}
                    )
                )
            await asyncio.gather(*writes, vectors.upsert(COLLECTION, points))


@asynccontextmanager
async def convergence(*words: str) -> AsyncIterator[str]:
    """A convergence service that embeds in no time; two texts are opposed if each has another of these words."""
    async with open_embeddings(EMBEDDER, cache=0) as shared:
        servicer = ConvergenceServicer(shared, shared, Agreements(WordAgreement(words), cache=100))
        service = Service(
            "parley.v1.ConvergenceService",
            lambda server: add_ConvergenceServiceServicer_to_server(servicer, server),
        )
        async with start_server([service]) as server:
            yield server.address


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds from start to the first recall; milliseconds of each that follows, and of the loop's pauses meanwhile.

    Attributes:
        longest_step: The longest step of the loop in milliseconds of its thread's processor time.
    """

    start: float
    longest_step: float
    recalls: Sequence[float]
    pauses: Sequence[float]
    idle_pauses: Sequence[float]


async def note_pauses(pauses: list[float]) -> None:
    """Note how late it is woken each time, in milliseconds."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        pauses.append((time.perf_counter() - began) * 1000 - 1)


@contextmanager
def note_steps(steps: list[float]) -> Iterator[None]:
    """Note the processor time of each step of this thread's event loop, in milliseconds."""
    run = events.Handle._run

    def run_timed(handle: events.Handle) -> None:
        began = time.thread_time()
        run(handle)
        steps.append((time.thread_time() - began) * 1000)

    events.Handle._run = run_timed  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        events.Handle._run = run  # type: ignore[method-assign]


def note_idle_pauses(control: Connection) -> None:
    """Note pauses in this process until the other end closes; send them then."""

    async def note_until_closed() -> list[float]:
        pauses = list[float]()
        async with background_task("noting pauses", note_pauses(pauses)):
            await asyncio.to_thread(control.recv)
        return pauses

    control.send(asyncio.run(note_until_closed()))


async def measure(folder: Path, recalls: int) -> Taken:
    """Start the service on a folder and recall."""
    async with convergence() as address:
        began = time.perf_counter()
        async with (
            build(settings(folder, address)) as service,
            start_server([service]) as server,
            channel(server.address) as opened,
        ):
            stub = MemoryServiceStub(opened)
            await recall(stub, "first")
            started = time.perf_counter() - began
            taken, pauses, steps = list[float](), list[float](), list[float]()
            ours, theirs = get_context("spawn").Pipe()
            idle = get_context("spawn").Process(target=note_idle_pauses, args=(theirs,))
            idle.start()
            with note_steps(steps):
                async with background_task("noting pauses", note_pauses(pauses)):
                    for number in range(recalls):
                        began = time.perf_counter()
                        await recall(stub, f"question {number} about orders")
                        taken.append((time.perf_counter() - began) * 1000)
            ours.send(None)
            idle_pauses: list[float] = await asyncio.to_thread(ours.recv)
            idle.join()
    return Taken(started, max(steps), taken, pauses, idle_pauses)


async def recall(stub: MemoryServiceStub, text: str) -> None:
    """Recall five, however unlike."""
    found = [each async for each in stub.Recall(pb.RecallRequest(text=text, floor_percent=1))]
    if len(found) != 5:
        raise RuntimeError(f"{len(found)} memories were recalled, not 5")


async def complete_index(folder: Path) -> None:
    """Run the service until it has recorded that its index is complete, as it is in use."""
    async with (
        convergence() as address,
        build(settings(folder, address)) as service,
        start_server([service]) as server,
        channel(server.address) as opened,
    ):
        await recall(MemoryServiceStub(opened), "first")
        async with open_store(settings(folder).store, "memory") as store:
            while not await is_complete(store.documents):  # noqa: ASYNC110 - another connection writes it
                await asyncio.sleep(0.2)


async def is_complete(documents: Documents) -> bool:
    """Return whether the index is recorded as complete."""
    found = await documents.get(FILL_PROGRESS, COLLECTION.name)
    return found is not None and found.fields["complete"] != 0


def in_own_process(folder: str, recalls: int, answer: Connection) -> None:
    """Measure in a process that did not fill the stores, tuned as that of a service."""
    return_large_blocks()
    tune_gc_and_threads()
    taken = asyncio.run(measure(Path(folder), recalls))
    answer.send((taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


async def measured(folder: str, recalls: int) -> tuple[Taken, float]:
    """What a fresh process took, and its memory in MiB."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=in_own_process, args=(folder, recalls, theirs))
    process.start()
    theirs.close()
    found: tuple[Taken, float] = await asyncio.to_thread(ours.recv)
    process.join()
    return found


def lateness(pauses: Sequence[float]) -> str:
    """Return p99, p99.9 and most."""
    cuts = quantiles(pauses, n=1000, method="inclusive")
    return f"{cuts[989]:.1f}, {cuts[998]:.1f}, {max(pauses):.1f}"


async def run(quick: bool) -> None:
    """Print the table."""
    rows = []
    for memories in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            await fill(Path(folder), memories)
            filled = memories / (time.perf_counter() - began)
            await complete_index(Path(folder))
            taken, memory = await measured(folder, 100 if quick else 500)
            shutil.rmtree(Path(folder) / "vectors")
            rebuilt, _ = await measured(folder, 100)
        cuts, lost_cuts = (quantiles(each.recalls, n=100) for each in (taken, rebuilt))
        rows.append(
            [
                f"{memories:,}",
                f"{cuts[49]:.1f}",
                f"{cuts[98]:.1f}",
                lateness(taken.pauses),
                lateness(taken.idle_pauses),
                f"{taken.longest_step:.1f}",
                f"{memory:.0f}",
                f"{taken.start:.2f}",
                f"{rebuilt.start:.1f}",
                f"{lost_cuts[98]:.1f}",
                f"{filled:.0f}",
            ]
        )
    table(
        [
            "memories",
            "p50 ms",
            "p99 ms",
            "loop late p99, p99.9, most ms",
            "idle loop late",
            "longest step of the loop, ms of CPU",
            "process MB",
            "start s",
            "first recall with a lost index s",
            "p99 ms meanwhile",
            "written /s",
        ],
        rows,
    )


if __name__ == "__main__":
    main(__doc__, run)
