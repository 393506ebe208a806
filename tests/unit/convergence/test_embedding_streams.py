"""A stream of texts ends with what ended it, and leaves nothing behind."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from parley.convergence.agreement import Agreements
from parley.convergence.embeddings import open_embeddings
from parley.convergence.servicer import ConvergenceServicer
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument
from parley.v1 import convergence_pb2 as pb
from tests.support.hash_embedder import HashEmbedder, embed_one
from tests.support.word_agreement import WordAgreement
from tests.unit.convergence.test_embeddings import HeldEmbedder


async def answer(requests: AsyncIterator[pb.EmbedRequest]) -> tuple[int, ParleyError | None]:
    """How many vectors came, and what came after them."""
    context: Any = None
    count = 0
    async with open_embeddings(HashEmbedder()) as shared, asyncio.timeout(20):
        servicer = ConvergenceServicer(shared, shared, Agreements(WordAgreement(), cache=1))
        try:
            async for _ in servicer.Embed(requests, context):
                count += 1
        except ParleyError as refused:
            return count, refused
    return count, None


@pytest.mark.parametrize("good", [0, 1, 100])
async def test_a_stream_that_breaks_off_is_answered_up_to_there_and_then_says_why(good: int) -> None:
    broken = invalid_argument([FieldViolation("", "no message")])

    async def requests() -> AsyncIterator[pb.EmbedRequest]:
        for number in range(good):
            yield pb.EmbedRequest(text=f"text {number}")
        raise broken

    assert await answer(requests()) == (good, broken)


async def test_of_several_bad_texts_none_is_a_failure_that_nobody_hears_of() -> None:
    async def requests() -> AsyncIterator[pb.EmbedRequest]:
        for text in ("good", *[" "] * 50):
            yield pb.EmbedRequest(text=text)

    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: unheard.append(told))
    count, refused = await answer(requests())
    assert (count, refused and refused.reason) == (1, "INVALID_ARGUMENT")
    del refused  # its traceback holds what nobody asks for any more
    gc.collect()
    await asyncio.sleep(0)
    assert not unheard


async def test_the_texts_of_a_stream_that_was_left_are_not_embedded() -> None:
    asked = asyncio.Event()

    async def requests() -> AsyncIterator[pb.EmbedRequest]:
        for text in ("left", "behind"):
            yield pb.EmbedRequest(text=text)
        asked.set()
        await asyncio.Event().wait()

    context: Any = None
    embedder = HeldEmbedder()
    async with open_embeddings(embedder) as shared, asyncio.timeout(20):
        servicer = ConvergenceServicer(shared, shared, Agreements(WordAgreement(), cache=1))
        first = asyncio.create_task(embed_one(shared, "first"))
        await embedder.begun.wait()
        leaving = asyncio.ensure_future(anext(servicer.Embed(requests(), context)))
        await asked.wait()
        leaving.cancel()
        await asyncio.wait([leaving])
        embedder.let_go.set()
        await first
        await embed_one(shared, "last")
    assert embedder.batches == [["first"], ["last"]]
