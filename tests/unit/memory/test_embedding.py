"""What the client for embeddings does before it asks."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from math import inf, nan
from unittest.mock import Mock

import pytest

from parley.memory import embedding
from parley.runtime.errors import ParleyError
from parley.v1.convergence_pb2 import EmbedRequest, EmbedResponse


def test_numpy_is_imported_on_a_thread_before_a_vector_is_there() -> None:
    code = """
import asyncio, sys, threading

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print("on the loop" if threading.current_thread() is threading.main_thread() else "on a thread")

sys.meta_path.insert(0, Watch())

from parley.memory.embedding import EmbeddingClient
from parley.memory.ranking import Candidate, rank
from parley.memory.traces import Trace
from parley.runtime.channel import channel
from parley.runtime.errors import ParleyError

async def recall():
    async with channel("127.0.0.1:1") as nowhere:
        try:
            await EmbeddingClient(nowhere).embed("a text")
        except ParleyError as error:
            print(error.reason)
    rank(["text"], [Candidate("deb-1", 0.9, [1.0], Trace())], 0.5, 0.0)

asyncio.run(recall())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["on a thread", "CONVERGENCE_UNAVAILABLE", ""]


@pytest.mark.parametrize("numbers", [(), (0.6, nan), (inf, 0.8), (inf, -inf)])
async def test_an_answer_without_numbers_or_with_ones_that_are_not_finite_is_no_embedding(
    numbers: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(_requests: object) -> AsyncIterator[EmbedResponse]:
        yield EmbedResponse(vector=numbers, model="a-model")

    monkeypatch.setattr(embedding, "ConvergenceServiceStub", Mock(return_value=Mock(Embed=answer)))
    with pytest.raises(ParleyError) as raised:
        await embedding.EmbeddingClient(Mock()).embed("a text")
    assert raised.value.reason == "CONVERGENCE_UNAVAILABLE"


async def test_embeddings_that_are_held_are_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def answer(requests: AsyncIterator[EmbedRequest]) -> AsyncIterator[EmbedResponse]:
        async for each in requests:
            asked.append(each.text)
            yield EmbedResponse(vector=[float(len(asked))], model="a-model")

    monkeypatch.setattr(embedding, "ConvergenceServiceStub", Mock(return_value=Mock(Embed=answer)))
    client = embedding.EmbeddingClient(Mock())
    texts = ["one", "two"]
    first = await client.embed(*texts)
    with embedding.hold_embeddings(texts, first):
        assert await asyncio.create_task(client.embed("two", "one")) == first[::-1]
        assert asked == texts
        await client.embed("two", "three")
        assert asked[2:] == ["two", "three"], "all of one call are of one model"
    await client.embed("one")
    assert asked[4:] == ["one"]
