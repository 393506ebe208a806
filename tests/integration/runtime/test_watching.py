"""What a reader gets of streams that fall silent, over a server's port and in its own process."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any

import grpc
import pytest

from parley.runtime import watching
from parley.runtime.server import start_server
from parley.runtime.watching import read_with_reconnects
from tests.integration.runtime.conftest import Reach
from tests.integration.runtime.wire import make_service, stream_method

PATIENCE = 30.0


class Numbers:
    """Reads a number from each message."""

    def __init__(self) -> None:
        self.last = 0

    def read(self, response: bytes) -> Iterable[int]:
        self.last = int(response)
        return (self.last,)


@pytest.fixture(autouse=True)
def _short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_SILENCE_SECONDS", 0.2)


async def fall_silent_after_two(request: bytes, _context: Any) -> AsyncIterator[bytes]:
    """Count to four from a number on; one that is asked for the first two says no more than these."""
    after = int(request)
    for number in range(after + 1, 3 if after < 2 else 5):
        yield str(number).encode()
    if after < 2:
        await asyncio.Event().wait()


async def test_a_stream_that_falls_silent_is_opened_again_where_it_was(reach: Reach) -> None:
    service = make_service(Count=fall_silent_after_two)
    async with start_server([service]) as server, reach(server) as there, asyncio.timeout(PATIENCE):
        numbers = read_with_reconnects(open_stream(there), Numbers(), PATIENCE)
        assert [each async for each in numbers] == [1, 2, 3, 4]


async def test_a_stream_is_not_silent_while_its_reader_does_something_else(
    reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = asyncio.Event()
    look = watching._Silence._look

    def look_and_say(silence: watching._Silence) -> None:
        look(silence)
        looked.set()

    monkeypatch.setattr(watching._Silence, "_look", look_and_say)
    opened: list[int] = []
    async with (
        start_server([make_service(Count=fall_silent_after_two)]) as server,
        reach(server) as there,
        asyncio.timeout(PATIENCE),
        aclosing(read_with_reconnects(open_stream(there, opened), Numbers(), PATIENCE)) as numbers,
    ):
        assert await anext(numbers) == 1
        before = len(opened)
        for _ in range(2):
            looked.clear()
            await looked.wait()
        assert await anext(numbers) == 2
        assert len(opened) == before


async def test_a_reader_that_is_cancelled_in_the_silence_gets_no_other_error(reach: Reach) -> None:
    got = asyncio.Event()

    async def read(there: grpc.aio.Channel) -> None:
        async for _ in read_with_reconnects(open_stream(there), Numbers(), PATIENCE):
            got.set()

    service = make_service(Count=fall_silent_after_two)
    async with start_server([service]) as server, reach(server) as there, asyncio.timeout(PATIENCE):
        reading = asyncio.create_task(read(there))
        await got.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


def open_stream(there: grpc.aio.Channel, opened: list[int] | None = None) -> Any:
    def open_after(sequence: int) -> Any:
        if opened is not None:
            opened.append(sequence)
        return stream_method(there, "Count")(str(sequence).encode())

    return open_after
