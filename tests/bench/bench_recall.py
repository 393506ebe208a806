"""Recall over gRPC at 1,000, 10,000 and 100,000 memories: p50, p99, memory, start-up, and making the index again."""

import asyncio
import resource
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
from parley.memory.debate import DEBATES, point_id, storage_key, to_fields
from parley.memory.embedding import Embedding
from parley.memory.settings import MemorySettings
from parley.runtime.channel import channel
from parley.runtime.server import Service, start_server
from parley.storage.opening import open_store, open_vectors
from parley.storage.ports import Point, VectorCollection
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
        await store.documents.prepare(DEBATES)
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
                fields = to_fields("default", record, Embedding(vector.tolist(), EMBEDDER.name))
                writes.append(store.documents.insert(DEBATES, key, fields))
                points.append(
                    Point(
                        point_id(key), vector.tolist(), {"key": key, "tenant": "default", "domain": "general"}
                    )
                )
            await asyncio.gather(*writes, vectors.upsert(COLLECTION, points))


@asynccontextmanager
async def convergence() -> AsyncIterator[str]:
    """A convergence service that embeds in no time."""
    async with open_embeddings(EMBEDDER, cache=0) as shared:
        servicer = ConvergenceServicer(shared, shared, Agreements(WordAgreement(()), cache=100))
        service = Service(
            "parley.v1.ConvergenceService",
            lambda server: add_ConvergenceServiceServicer_to_server(servicer, server),
        )
        async with start_server([service]) as server:
            yield server.address


async def measure(folder: Path, recalls: int) -> tuple[float, list[float]]:
    """Seconds from start to the first recall, and milliseconds of each that follows."""
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
            taken = []
            for number in range(recalls):
                began = time.perf_counter()
                await recall(stub, f"question {number} about orders")
                taken.append((time.perf_counter() - began) * 1000)
    return started, taken


async def recall(stub: MemoryServiceStub, text: str) -> None:
    """Recall five, however unlike."""
    found = [each async for each in stub.Recall(pb.RecallRequest(text=text, floor_percent=1))]
    if len(found) != 5:
        raise RuntimeError(f"{len(found)} memories were recalled, not 5")


def in_own_process(folder: str, recalls: int, answer: Connection) -> None:
    """Measure in a process that did not fill the stores."""
    started, taken = asyncio.run(measure(Path(folder), recalls))
    answer.send((started, taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


async def measured(folder: str, recalls: int) -> tuple[float, list[float], float]:
    """Start, recalls and memory of a fresh process."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=in_own_process, args=(folder, recalls, theirs))
    process.start()
    theirs.close()
    found: tuple[float, list[float], float] = await asyncio.to_thread(ours.recv)
    process.join()
    return found


async def run(quick: bool) -> None:
    """Print the table."""
    rows = []
    for memories in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            await fill(Path(folder), memories)
            filled = memories / (time.perf_counter() - began)
            started, taken, memory = await measured(folder, 100 if quick else 500)
            shutil.rmtree(Path(folder) / "vectors")
            rebuilt, _, _ = await measured(folder, 0)
        cuts = quantiles(taken, n=100)
        rows.append(
            [
                f"{memories:,}",
                f"{cuts[49]:.1f}",
                f"{cuts[98]:.1f}",
                f"{memory:.0f}",
                f"{started:.2f}",
                f"{rebuilt:.1f}",
                f"{filled:.0f}",
            ]
        )
    table(
        ["memories", "p50 ms", "p99 ms", "process MB", "start s", "start with a lost index s", "written /s"],
        rows,
    )


if __name__ == "__main__":
    main(__doc__, run)
