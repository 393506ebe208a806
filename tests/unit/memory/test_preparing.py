"""The model that embeds is loaded while agents write, not before their first calls and not after their answer."""

import asyncio

import grpc

from parley.memory.embedding import Embedding, EmbeddingClient
from parley.runtime.errors import unavailable
from tests.support.manual_clock import ManualClock


class CountingClient(EmbeddingClient):
    """Counts what it was asked to embed, and cannot."""

    def __init__(self) -> None:
        super().__init__(grpc.aio.insecure_channel("127.0.0.1:9"))
        self.asked: list[str] = []

    async def embed(self, *texts: str) -> list[Embedding]:
        self.asked += texts
        raise unavailable("CONVERGENCE_UNAVAILABLE", "away")


async def test_the_model_is_asked_for_a_moment_after_a_text_is_expected_and_only_then() -> None:
    client, clock = CountingClient(), ManualClock()
    preparing = asyncio.create_task(client.prepare(clock))
    client.expect_text()
    await clock.sleeping()
    clock.advance(0.5)
    await asyncio.sleep(0)
    assert not client.asked, "the first calls of the debate come first"
    clock.advance(60)
    await preparing
    assert len(client.asked) == 1


async def test_no_model_is_asked_for_while_no_text_is_expected() -> None:
    client = CountingClient()
    preparing = asyncio.create_task(client.prepare(ManualClock()))
    done, _ = await asyncio.wait([preparing], timeout=0.05)
    preparing.cancel()
    assert not done
    assert not client.asked
