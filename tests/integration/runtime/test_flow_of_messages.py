"""How fast and how large messages may come: whoever is slow loses nothing, and whatever is too large is refused, over a port and in its own process."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from parley.runtime.message_limits import MAX_MESSAGE_BYTES
from parley.runtime.server import start_server
from tests.integration.runtime.conftest import Reach
from tests.integration.runtime.handlers import LARGE_SERVICE, Context, code_of, echo
from tests.integration.runtime.wire import (
    client_stream,
    collect_method,
    make_service,
    method,
    stream_method,
)


async def test_a_handler_that_answers_before_it_has_read_all_requests_ends_them(reach: Reach) -> None:
    closed, never = asyncio.Event(), asyncio.Event()

    async def take_first(requests: AsyncIterator[bytes], _context: Context) -> bytes:
        return await anext(requests)

    async def endless() -> AsyncIterator[bytes]:
        try:
            for _ in range(1000):
                yield b"x" * 10_000
            never.set()
        finally:
            closed.set()

    service = make_service(First=client_stream(take_first))
    async with start_server([service]) as server, reach(server) as there, asyncio.timeout(30):
        assert await collect_method(there, "First")(endless()) == b"x" * 10_000
        await closed.wait()
    assert not never.is_set()


async def test_a_handler_waits_for_a_slow_reader_and_loses_nothing(reach: Reach) -> None:
    made = 0

    async def flood(_request: bytes, _context: Context) -> AsyncIterator[bytes]:
        nonlocal made
        for made in range(1, 2001):
            yield made.to_bytes(2) * 5000

    async with (
        start_server([make_service(Flood=flood, Echo=echo)]) as server,
        reach(server) as there,
        asyncio.timeout(60),
    ):
        call = stream_method(there, "Flood")(b"")
        read = [await call.read()]
        for _ in range(100):
            await method(there, "Echo")(b"")
        assert made < 1000, "it stopped: nobody reads"
        read += [each async for each in _rest(call)]
    assert [int.from_bytes(each[:2]) for each in read] == list(range(1, 2001))


async def test_a_caller_waits_for_a_slow_handler_and_loses_nothing(reach: Reach) -> None:
    read_on, made = asyncio.Event(), 0

    async def collect(requests: AsyncIterator[bytes], _context: Context) -> bytes:
        await read_on.wait()
        return str(len([each async for each in requests])).encode()

    async def flood() -> AsyncIterator[bytes]:
        nonlocal made
        for _ in range(2000):
            made += 1
            yield b"x" * 10_000

    service = make_service(Collect=client_stream(collect), Echo=echo)
    async with start_server([service]) as server, reach(server) as there, asyncio.timeout(60):
        call = collect_method(there, "Collect")(flood())
        for _ in range(100):
            await method(there, "Echo")(b"")
        assert made < 1000, "it stopped: nobody reads"
        read_on.set()
        assert await call == b"2000"


async def _rest(call: Any) -> AsyncIterator[bytes]:
    while (message := await call.read()) is not grpc.aio.EOF:
        yield message


async def test_large_messages_pass_up_to_the_limit_and_no_further(reach: Reach) -> None:
    async def enlarge(request: bytes, _context: Context) -> bytes:
        return request + b"x"

    async def enlarge_each(request: bytes, _context: Context) -> AsyncIterator[bytes]:
        yield request + b"x"

    most = b"x" * MAX_MESSAGE_BYTES
    service = make_service(LARGE_SERVICE, CreateDebate=enlarge, GetDebate=echo, WatchDebate=enlarge_each)
    async with start_server([service]) as server, reach(server) as there:
        create = method(there, "CreateDebate", LARGE_SERVICE)
        assert await create(most[: 8 * 1024 * 1024 - 1]) == most[: 8 * 1024 * 1024]
        assert await code_of(create(most + b"x")) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (
            await code_of(method(there, "GetDebate", LARGE_SERVICE)(most)) is grpc.StatusCode.INVALID_ARGUMENT
        )
        assert await create(b"") == b"x", "the channel goes on"


@pytest.mark.parametrize("shape", ["unary", "stream"])
async def test_an_answer_over_the_limit_of_a_message_fails_its_call(reach: Reach, shape: str) -> None:
    async def answer(_request: bytes, _context: Context) -> bytes:
        return b"x" * (MAX_MESSAGE_BYTES + 1)

    async def answers(_request: bytes, _context: Context) -> AsyncIterator[bytes]:
        yield b"x" * (MAX_MESSAGE_BYTES + 1)

    async with start_server([make_service(Ask=answer, Watch=answers)]) as server, reach(server) as there:
        call = method(there, "Ask")(b"") if shape == "unary" else stream_method(there, "Watch")(b"").read()
        assert await code_of(call) is grpc.StatusCode.RESOURCE_EXHAUSTED
