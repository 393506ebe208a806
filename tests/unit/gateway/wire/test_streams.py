"""A stream that never waits: others get their turn between its chunks."""

import asyncio
from collections.abc import AsyncIterator

import httpx2

from parley.gateway.wire.api import Api
from parley.gateway.wire.dialects import reader
from parley.gateway.wire.streams import Heard, IncomingText, Patience, read_events


class AllThere(httpx2.AsyncByteStream):
    def __init__(self, others: list[int]) -> None:
        self._others = others
        self.seen: list[int] = []

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(100):
            self.seen.append(len(self._others))
            yield b"\n\n"


async def test_a_stream_of_newlines_still_yields() -> None:
    turns: list[int] = []

    async def another() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    stream = AllThere(turns)
    heard = Heard(None, Patience())
    async with asyncio.timeout(30):
        task = asyncio.create_task(another())
        response = httpx2.Response(200, stream=stream)
        await heard.within(read_events(response, reader(Api.CHAT), IncomingText(heard), heard))
        task.cancel()
    assert stream.seen[-1] > 90
