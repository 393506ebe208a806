"""What becomes of calls when a server drains or ends, or a channel is closed, over a port and in its own process."""

import asyncio

import grpc
import pytest

from parley.runtime import errors
from parley.runtime.server import ServerSettings, start_server
from tests.integration.runtime.conftest import Reach
from tests.integration.runtime.handlers import Context, Watched, code_of, echo
from tests.integration.runtime.wire import (
    make_service,
    method,
    stream_method,
)


async def test_a_server_that_was_drained_is_unavailable_and_that_is_a_failure_of_transport(
    reach: Reach,
) -> None:
    async with start_server([make_service(Echo=echo)]) as server, reach(server) as there:
        assert await method(there, "Echo")(b"") == b""
        await server.drain()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(there, "Echo")(b"", timeout=20)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert errors.is_transport(caught.value)


async def test_a_draining_server_lets_a_call_end_and_takes_no_other(reach: Reach) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def answer_later(request: bytes, _context: Context) -> bytes:
        began.set()
        await go_on.wait()
        return request

    async with (
        start_server([make_service(Slow=answer_later)], ServerSettings(grace_seconds=30)) as server,
        reach(server) as there,
        asyncio.timeout(30),
    ):
        call = method(there, "Slow")(b"answer")
        await began.wait()
        draining = asyncio.create_task(server.drain())
        await server.draining.wait()
        while await _is_answered(there):
            pass
        assert not draining.done()
        go_on.set()
        assert await call == b"answer"
        await draining


async def _is_answered(there: grpc.aio.Channel) -> bool:
    """Whether the server still takes calls: of a method that it does not have."""
    return await code_of(method(there, "Absent")(b"", timeout=20)) is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("shape", ["unary", "stream"])
async def test_a_call_that_outlives_the_grace_of_its_server_is_cut_as_a_failure_of_transport(
    reach: Reach, shape: str
) -> None:
    watched = Watched()
    settings = ServerSettings(grace_seconds=0.1)
    service = make_service(Unary=watched.unary, Stream=watched.stream)
    async with (
        start_server([service], settings) as server,
        reach(server) as there,
        asyncio.timeout(30),
    ):
        call = method(there, "Unary")(b"") if shape == "unary" else stream_method(there, "Stream")(b"")
        await watched.began.wait()
        draining = asyncio.create_task(server.drain())
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            _ = [each async for each in call] if shape == "stream" else await call
        await draining
        await watched.cancelled.wait()
    assert errors.is_transport(caught.value)


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["by the server", "by the caller before"])
async def test_a_handler_that_is_cut_at_the_end_of_its_server_finishes_its_cleanup(
    reach: Reach, is_cancelled: bool
) -> None:
    began, cleaning, ended = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop().create_future()

    async def wait(_request: bytes, _context: Context) -> bytes:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            try:
                await server.draining.wait()
                for _ in range(500):
                    await asyncio.sleep(0)
                ended.set_result("cleaned up")
            except asyncio.CancelledError:
                ended.set_result("cancelled again")
        return b""

    async with (
        start_server([make_service(Wait=wait)], ServerSettings(grace_seconds=0)) as server,
        reach(server) as there,
        asyncio.timeout(30),
    ):
        call = method(there, "Wait")(b"")
        await began.wait()
        if is_cancelled:
            call.cancel()
            await cleaning.wait()
        await server.drain()
        assert await ended == "cleaned up"


@pytest.mark.parametrize("reach", ["direct"], indirect=True)  # gRPC lets it go on
async def test_a_handler_that_goes_on_after_an_abort_is_cancelled_at_the_end_of_its_server(
    reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.runtime.direct.server._CLEANUP_SECONDS", 60.0)
    cancelled = asyncio.Event()

    async def refuse(_request: bytes, context: Context) -> bytes:
        try:
            await context.abort(grpc.StatusCode.ABORTED, "no")
        finally:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

    async with (
        start_server([make_service(Refuse=refuse)], ServerSettings(grace_seconds=0)) as server,
        reach(server) as there,
        asyncio.timeout(30),
    ):
        assert await code_of(method(there, "Refuse")(b"")) is grpc.StatusCode.ABORTED
        await server.drain()
        await cancelled.wait()


async def test_a_closed_channel_ends_its_calls_and_takes_no_other(reach: Reach) -> None:
    watched = Watched()
    async with (
        start_server([make_service(Wait=watched.unary, Echo=echo)]) as server,
        asyncio.timeout(30),
    ):
        there = reach(server)
        await there.channel_ready()
        assert there.get_state() is grpc.ChannelConnectivity.READY
        call = method(there, "Wait")(b"")
        await watched.began.wait()
        await there.close()
        assert there.get_state() is grpc.ChannelConnectivity.SHUTDOWN
        assert await call.code() is grpc.StatusCode.CANCELLED
        with pytest.raises(grpc.aio.UsageError):
            method(there, "Echo")(b"")
        await watched.cancelled.wait()


async def test_a_closing_channel_gives_its_calls_the_time_that_they_may_have(reach: Reach) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def answer_later(request: bytes, _context: Context) -> bytes:
        began.set()
        await go_on.wait()
        return request

    async with start_server([make_service(Slow=answer_later)]) as server, asyncio.timeout(30):
        there = reach(server)
        call = method(there, "Slow")(b"answer")
        await began.wait()
        closing = asyncio.create_task(there.close(20))
        go_on.set()
        assert await call == b"answer"
        await closing
