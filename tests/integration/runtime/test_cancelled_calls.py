"""A call that its caller or its time ends: its handler is cancelled, whatever it does, over a port and in its own process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import grpc
import pytest

from parley.runtime.server import start_server
from tests.integration.runtime.conftest import Reach
from tests.integration.runtime.handlers import Context, Watched, code_of, echo, join
from tests.integration.runtime.wire import (
    client_stream,
    collect_method,
    make_service,
    method,
    stream_method,
)


async def test_a_deadline_is_known_to_the_handler_and_cuts_both_sides_when_it_passes(reach: Reach) -> None:
    watched = Watched()
    left: list[float | None] = []

    async def tell(_request: bytes, context: Context) -> bytes:
        left.append(context.time_remaining())
        return b""

    service = make_service(Tell=tell, Wait=watched.unary)
    async with start_server([service]) as server, reach(server) as there, asyncio.timeout(30):
        await method(there, "Tell")(b"", timeout=20)
        await method(there, "Tell")(b"")
        call = method(there, "Wait")(b"", timeout=0.5)
        assert 0 < call.time_remaining() <= 0.5
        assert await code_of(call) is grpc.StatusCode.DEADLINE_EXCEEDED
        await watched.cancelled.wait()
    assert left[0] is not None
    assert 0 < left[0] <= 20
    assert left[1] is None
    assert not call.cancelled()


async def test_a_deadline_that_passes_in_mid_stream_comes_after_what_was_read(reach: Reach) -> None:
    watched = Watched()
    async with (
        start_server([make_service(Watch=watched.stream)]) as server,
        reach(server) as there,
        asyncio.timeout(30),
    ):
        call = stream_method(there, "Watch")(b"", timeout=3)
        assert await call.read() == b"first"
        assert await code_of(call.read()) is grpc.StatusCode.DEADLINE_EXCEEDED
        await watched.cancelled.wait()


@pytest.mark.parametrize("shape", ["Unary", "Stream", "Collect"])
async def test_a_cancelled_call_cancels_its_handler_whatever_it_does(reach: Reach, shape: str) -> None:
    watched = Watched()
    ended: list[object] = []
    service = make_service(Unary=watched.unary, Stream=watched.stream, Collect=client_stream(watched.collect))

    async def endless() -> AsyncIterator[bytes]:
        yield b""
        await asyncio.Event().wait()

    async with start_server([service]) as server, reach(server) as there, asyncio.timeout(30):
        start: Callable[[], Any] = {
            "Unary": lambda: method(there, "Unary")(b""),
            "Stream": lambda: stream_method(there, "Stream")(b""),
            "Collect": lambda: collect_method(there, "Collect")(endless()),
        }[shape]
        call = start()
        call.add_done_callback(ended.append)
        if shape == "Stream":
            assert await call.read() == b"first"
        await watched.began.wait()
        assert call.cancel()
        assert call.cancelled()
        assert await call.code() is grpc.StatusCode.CANCELLED
        await watched.cancelled.wait()
        with pytest.raises(asyncio.CancelledError):
            await (call.read() if shape == "Stream" else call)
    assert len(ended) == 1
    assert len(watched.told) == (shape != "Collect"), "its handler is told once"


@pytest.mark.parametrize("shape", ["unary", "stream"])
async def test_a_cancelled_task_of_the_caller_cancels_the_handler(reach: Reach, shape: str) -> None:
    watched = Watched()

    async def ask(there: grpc.aio.Channel) -> None:
        if shape == "unary":
            await method(there, "Unary")(b"")
        else:
            async for _ in stream_method(there, "Stream")(b""):
                pass

    service = make_service(Unary=watched.unary, Stream=watched.stream)
    async with start_server([service]) as server, reach(server) as there, asyncio.timeout(30):
        task = asyncio.create_task(ask(there))
        await watched.began.wait()
        task.cancel()
        await watched.cancelled.wait()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_call_cancelled_at_once_ends_and_the_next_one_is_answered(reach: Reach) -> None:
    async with start_server([make_service(Echo=echo)]) as server, reach(server) as there:
        call = method(there, "Echo")(b"")
        call.cancel()
        assert await call.code() is grpc.StatusCode.CANCELLED
        assert await method(there, "Echo")(b"next") == b"next"


async def test_requests_that_fail_cancel_their_call(reach: Reach) -> None:
    def send_and_fail() -> Iterator[bytes]:
        yield b"a"
        raise ZeroDivisionError

    async with start_server([make_service(Join=client_stream(join))]) as server, reach(server) as there:
        call = collect_method(there, "Join")(send_and_fail())
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await call.code() is grpc.StatusCode.CANCELLED
