"""What embeds a debate is prepared while agents write, not before their first calls and not after their answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from parley.memory.debate import DEBATES, FILL_PROGRESS
from parley.memory.embedding import Embedding, EmbeddingClient
from parley.memory.index import DebateIndex
from parley.memory.stored_vectors import to_vector
from parley.runtime.errors import unavailable
from parley.storage.opening import open_store, open_vectors
from tests.support.manual_clock import ManualClock


class CountingClient(EmbeddingClient):
    """Counts what it was asked to embed."""

    def __init__(self, *, away: bool = False) -> None:
        super().__init__(grpc.aio.insecure_channel("127.0.0.1:9"))
        self.asked: list[str] = []
        self._away = away

    async def embed(self, *texts: str) -> list[Embedding]:
        self.asked += texts
        if self._away:
            raise unavailable("CONVERGENCE_UNAVAILABLE", "away")
        return [Embedding(to_vector([0.0, 1.0]), "a-model")] * len(texts)


@asynccontextmanager
async def open_index(folder: Path, client: EmbeddingClient) -> AsyncIterator[DebateIndex]:
    async with (
        open_store(f"sqlite:///{folder / 'store'}", "memory") as store,
        open_vectors(f"edge:{folder / 'vectors'}") as vectors,
    ):
        await store.documents.prepare(DEBATES, FILL_PROGRESS)
        yield DebateIndex(store.documents, vectors, client)


async def test_the_index_is_opened_a_moment_after_a_text_is_expected_and_not_before(tmp_path: Path) -> None:
    client, clock = CountingClient(), ManualClock()
    async with open_index(tmp_path, client) as index:
        preparing = asyncio.create_task(index.prepare(clock))
        client.expect_text()
        await clock.sleeping()
        clock.advance(0.1)
        await asyncio.sleep(0)
        assert not client.asked, "the first calls of the debate come first"
        clock.advance(60)
        await preparing
    assert len(client.asked) == 1
    assert [*(tmp_path / "vectors").glob("debates-a-model*")]


async def test_a_model_that_is_away_is_asked_again_only_when_it_is_needed(tmp_path: Path) -> None:
    client, clock = CountingClient(away=True), ManualClock()
    async with open_index(tmp_path, client) as index:
        client.expect_text()
        preparing = asyncio.create_task(index.prepare(clock))
        await clock.sleeping()
        clock.advance(60)
        await preparing
    assert len(client.asked) == 1


async def test_nothing_is_prepared_while_no_text_is_expected(tmp_path: Path) -> None:
    client = CountingClient()
    async with open_index(tmp_path, client) as index:
        preparing = asyncio.create_task(index.prepare(ManualClock()))
        done, _ = await asyncio.wait([preparing], timeout=0.05)
        preparing.cancel()
    assert not done
    assert not client.asked
