import asyncio
from collections.abc import Sequence

import pytest

from parley.convergence.embeddings import open_embeddings
from parley.convergence.vectors import Vector
from parley.runtime.errors import ParleyError, unavailable
from tests.support.hash_embedder import HashEmbedder, embed_one


class HeldEmbedder(HashEmbedder):
    """Answers when it is let go, or fails."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = asyncio.Event()
        self.begun = asyncio.Event()
        self.error: Exception | None = None

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = await super().embed(texts)
        self.begun.set()
        await self.let_go.wait()
        if self.error is not None:
            raise self.error
        return vectors


async def test_texts_that_wait_together_share_batches_of_at_most_32() -> None:
    embedder = HeldEmbedder()
    async with open_embeddings(embedder) as shared, asyncio.timeout(30):
        first = asyncio.create_task(embed_one(shared, "first"))
        await embedder.begun.wait()
        rest = [asyncio.create_task(embed_one(shared, f"text {number}")) for number in range(40)]
        await asyncio.sleep(0)
        embedder.let_go.set()
        await asyncio.gather(first, *rest)
    assert [len(batch) for batch in embedder.batches] == [1, 32, 8]


async def test_a_text_that_is_asked_for_twice_at_once_is_embedded_once() -> None:
    embedder = HashEmbedder()
    async with open_embeddings(embedder) as shared:
        one, other = await asyncio.gather(shared.embed(["same", "same"]), shared.embed(["same"]))
    assert embedder.batches == [["same"]]
    assert all((each == embedder.vector("same")).all() for each in [*one, *other])


async def test_recent_texts_are_kept_and_the_oldest_makes_room() -> None:
    embedder = HashEmbedder()
    async with open_embeddings(embedder, cache=2) as shared:
        for text in ("a", "b", "a", "c", "a", "b"):
            await embed_one(shared, text)
    assert [text for batch in embedder.batches for text in batch] == ["a", "b", "c", "b"]


async def test_a_failure_reaches_all_who_wait_and_the_next_try_is_made_anew() -> None:
    embedder = HeldEmbedder()
    embedder.error = unavailable("EMBEDDINGS_UNAVAILABLE", "away")
    embedder.let_go.set()
    async with open_embeddings(embedder) as shared:
        results = await asyncio.gather(
            embed_one(shared, "x"), shared.embed(["x", "y"]), return_exceptions=True
        )
        assert all(
            isinstance(each, ParleyError) and each.reason == "EMBEDDINGS_UNAVAILABLE" for each in results
        )
        embedder.error = None
        assert (await embed_one(shared, "x") == embedder.vector("x")).all()


async def test_a_caller_that_hangs_up_takes_nothing_from_the_others() -> None:
    embedder = HeldEmbedder()
    async with open_embeddings(embedder) as shared, asyncio.timeout(30):
        leaving = asyncio.create_task(embed_one(shared, "x"))
        await embedder.begun.wait()
        staying = asyncio.create_task(embed_one(shared, "x"))
        await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        embedder.let_go.set()
        assert (await staying == embedder.vector("x")).all()


async def test_closing_leaves_nobody_waiting() -> None:
    embedder = HeldEmbedder()
    async with asyncio.timeout(30):
        async with open_embeddings(embedder) as shared:
            waiting = asyncio.create_task(embed_one(shared, "x"))
            await embedder.begun.wait()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_a_text_whose_callers_have_all_hung_up_is_not_embedded() -> None:
    embedder = HeldEmbedder()
    async with open_embeddings(embedder) as shared, asyncio.timeout(30):
        first = asyncio.create_task(embed_one(shared, "first"))
        await embedder.begun.wait()
        leaving = asyncio.create_task(shared.embed(["left", "behind"]))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        embedder.let_go.set()
        await first
        await shared.embed(["last", "behind"])
    assert sorted(text for batch in embedder.batches for text in batch) == ["behind", "first", "last"]
