"""What a call promises to caller and handler, over a server's port and from its own process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from parley.runtime import errors
from parley.runtime.message_limits import MAX_MESSAGE_BYTES
from parley.runtime.server import ServerSettings, start_server
from parley.v1 import orchestrator_pb2
from tests.integration.runtime.conftest import Reach
from tests.integration.runtime.wire import (
    client_stream,
    collect_method,
    make_service,
    method,
    stream_method,
)

LARGE_SERVICE = orchestrator_pb2.DESCRIPTOR.services_by_name["OrchestratorService"].full_name
"""Its CreateDebate takes the largest requests."""
Context = grpc.aio.ServicerContext[bytes, bytes]


async def echo(request: bytes, _context: Context) -> bytes:
    return request


async def wait_forever(_request: bytes, _context: Context) -> bytes:
    await asyncio.Event().wait()
    return b""


async def count_up(request: bytes, _context: Context) -> AsyncIterator[bytes]:
    for number in range(int(request)):
        yield str(number).encode()


async def join(requests: AsyncIterator[bytes], _context: Context) -> bytes:
    return b"".join([each async for each in requests])


async def echo_each(requests: AsyncIterator[bytes], _context: Context) -> AsyncIterator[bytes]:
    async for each in requests:
        yield each


def both_streams(handler: Any) -> "grpc.RpcMethodHandler[bytes, bytes]":
    return grpc.stream_stream_rpc_method_handler(handler)


def both_streams_method(channel: grpc.aio.Channel, name: str) -> Any:
    return channel.stream_stream(f"/test.v1.TestService/{name}")


async def code_of(call: Awaitable[object]) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code()


class Watched:
    """A handler that waits, and says when it began and how it ended."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.told: list[object] = []

    async def unary(self, _request: bytes, context: Context) -> bytes:
        await self._wait(context)
        return b""

    async def stream(self, _request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"first"
        await self._wait(context)

    async def collect(self, requests: AsyncIterator[bytes], context: Context) -> bytes:
        self.began.set()
        try:
            async for _ in requests:
                pass
            await asyncio.Event().wait()  # gRPC may end the requests before it cancels the handler
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return b""

    async def _wait(self, context: Any) -> None:
        context.add_done_callback(self.told.append)
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


async def test_each_shape_of_call_answers(reach: Reach) -> None:
    service = make_service(
        Echo=echo, Count=count_up, Join=client_stream(join), EchoEach=both_streams(echo_each)
    )

    async def letters() -> AsyncIterator[bytes]:
        for each in (b"a", b"b", b"c"):
            yield each

    async with start_server([service]) as server, reach(server) as there:
        assert await method(there, "Echo")(b"one") == b"one"
        assert [each async for each in stream_method(there, "Count")(b"3")] == [b"0", b"1", b"2"]
        assert [each async for each in stream_method(there, "Count")(b"0")] == []
        assert await collect_method(there, "Join")(letters()) == b"abc"
        assert await collect_method(there, "Join")(iter([b"a", b"b"])) == b"ab"
        assert [each async for each in both_streams_method(there, "EchoEach")(letters())] == [
            b"a",
            b"b",
            b"c",
        ]


async def test_a_stream_is_read_one_by_one_to_its_end_and_says_so_again(reach: Reach) -> None:
    async with start_server([make_service(Count=count_up)]) as server, reach(server) as there:
        call = stream_method(there, "Count")(b"2")
        assert [await call.read() for _ in range(4)] == [b"0", b"1", grpc.aio.EOF, grpc.aio.EOF]
        assert await call.code() is grpc.StatusCode.OK
        assert call.done()
        assert not call.cancel()
        assert not call.cancelled()


async def test_a_stream_is_over_for_its_caller_when_that_has_read_all_though_the_handler_is_done(
    reach: Reach,
) -> None:
    ended = asyncio.Event()

    async def count(_request: bytes, context: Any) -> AsyncIterator[bytes]:
        context.set_trailing_metadata((("last", "word"),))
        for each in (b"a", b"b", b"c"):
            yield each
        ended.set()

    async with (
        start_server([make_service(Count=count, Echo=echo)]) as server,
        reach(server) as there,
        asyncio.timeout(30),
    ):
        call = stream_method(there, "Count")(b"")
        assert await call.read() == b"a"
        await ended.wait()
        for _ in range(20):
            await method(there, "Echo")(b"")
        assert not call.done()
        assert [await call.read() for _ in range(3)] == [b"b", b"c", grpc.aio.EOF]
        assert call.done()
        assert (await call.trailing_metadata())["last"] == "word"


async def test_requests_that_are_written_one_by_one_are_answered_one_by_one(reach: Reach) -> None:
    async with (
        start_server([make_service(EchoEach=both_streams(echo_each))]) as server,
        reach(server) as there,
    ):
        call = both_streams_method(there, "EchoEach")()
        for each in (b"a", b"b"):
            await call.write(each)
            assert await call.read() == each
        await call.done_writing()
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(b"c")
        assert await call.read() is grpc.aio.EOF
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(b"c")


async def test_metadata_go_both_ways_with_bytes_and_without(reach: Reach) -> None:
    async def tell(_request: bytes, context: Context) -> AsyncIterator[bytes]:
        given = dict(context.invocation_metadata() or ())
        await context.send_initial_metadata((("first", str(given["name"])),))
        context.set_trailing_metadata((("last-bin", given["name-bin"]),))
        yield b""

    async with start_server([make_service(Tell=tell)]) as server, reach(server) as there:
        call = stream_method(there, "Tell")(b"", metadata=(("name", "ada"), ("name-bin", b"\x00\xff")))
        await call.wait_for_connection()
        assert (await call.initial_metadata())["first"] == "ada"
        assert [each async for each in call] == [b""]
        assert (await call.trailing_metadata())["last-bin"] == b"\x00\xff"


async def test_a_handler_that_only_sets_a_status_ends_with_it(reach: Reach) -> None:
    async def refuse(_request: bytes, context: Context) -> bytes:
        context.set_code(grpc.StatusCode.ABORTED)
        context.set_details("not now")
        return b""

    async with start_server([make_service(Refuse=refuse)]) as server, reach(server) as there:
        call = method(there, "Refuse")(b"")
        assert await code_of(call) is grpc.StatusCode.ABORTED
        assert await call.code() is grpc.StatusCode.ABORTED
        assert await call.details() == "not now"


async def test_an_abort_ends_a_call_at_once_though_the_handler_goes_on(reach: Reach) -> None:
    go_on, written = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def refuse(_request: bytes, context: Context) -> None:
        try:
            await context.abort(grpc.StatusCode.ABORTED, "é: no", (("why", "so"),))
        finally:
            await go_on.wait()
            try:
                await context.write(b"late")
            except BaseException as error:
                written.set_result(type(error))
                raise

    service = make_service(Refuse=grpc.unary_stream_rpc_method_handler(refuse))
    async with start_server([service]) as server, reach(server) as there, asyncio.timeout(30):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream_method(there, "Refuse")(b"").read()
        go_on.set()
        assert await written is grpc.aio.AbortError
    trailing = caught.value.trailing_metadata()
    assert trailing is not None
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.ABORTED, "é: no")
    assert trailing["why"] == "so"


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
    def broken() -> Iterator[bytes]:
        yield b"a"
        raise ZeroDivisionError

    async with start_server([make_service(Join=client_stream(join))]) as server, reach(server) as there:
        call = collect_method(there, "Join")(broken())
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await call.code() is grpc.StatusCode.CANCELLED


async def test_a_handler_that_answers_before_it_has_read_all_requests_ends_them(reach: Reach) -> None:
    closed, never = asyncio.Event(), asyncio.Event()

    async def first_only(requests: AsyncIterator[bytes], _context: Context) -> bytes:
        return await anext(requests)

    async def endless() -> AsyncIterator[bytes]:
        try:
            for _ in range(1000):
                yield b"x" * 10_000
            never.set()
        finally:
            closed.set()

    service = make_service(First=client_stream(first_only))
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


async def test_many_calls_at_the_same_time_each_get_their_own_answer(reach: Reach) -> None:
    gate, inside = asyncio.Event(), 0

    async def meet(request: bytes, _context: Context) -> bytes:
        nonlocal inside
        inside += 1
        if inside == 300:
            gate.set()
        await gate.wait()
        return request

    async with (
        start_server([make_service(Meet=meet)]) as server,
        reach(server) as there,
        asyncio.timeout(60),
    ):
        numbers = [str(each).encode() for each in range(300)]
        assert await asyncio.gather(*[method(there, "Meet")(each) for each in numbers]) == numbers


async def test_no_side_sees_what_the_other_one_changes_in_a_message_after_it_was_sent(reach: Reach) -> None:
    kind = health_pb2.HealthCheckRequest
    seen = asyncio.get_running_loop().create_future()

    async def tell(requests: AsyncIterator[Any], _context: Context) -> AsyncIterator[Any]:
        answer = kind()
        async for each in requests:
            answer.service = f"{each.service} again"
            yield answer
            answer.service = "changed"
            each.service = "changed too"
        seen.set_result(None)

    service = make_service(
        Tell=grpc.stream_stream_rpc_method_handler(
            tell, request_deserializer=kind.FromString, response_serializer=kind.SerializeToString
        )
    )
    async with start_server([service]) as server, reach(server) as there, asyncio.timeout(30):
        ask: Any = there.stream_stream("/test.v1.TestService/Tell", kind.SerializeToString, kind.FromString)
        call, request = ask(), kind()
        for name in ("one", "two"):
            request.service = name
            await call.write(request)
            request.service = "changed"
        await call.done_writing()
        await seen
        assert [each.service async for each in call] == ["one again", "two again"]
    assert request.service == "changed"


async def test_a_handler_inherits_no_variable_of_its_caller_and_leaves_it_none(reach: Reach) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="of the server")

    async def tell(_request: bytes, _context: Context) -> bytes:
        found = variable.get()
        variable.set("of the handler")
        return found.encode()

    async with start_server([make_service(Tell=tell)]) as server, reach(server) as there:
        variable.set("of the caller")
        assert [await method(there, "Tell")(b"") for _ in range(2)] == [b"of the server"] * 2
        assert variable.get() == "of the caller"


async def test_the_health_of_a_server_is_told_to_stubs(reach: Reach) -> None:
    async with start_server([make_service(Echo=echo)]) as server, reach(server) as there:
        stub: Any = health_pb2_grpc.HealthStub(there)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service="test.v1.TestService"))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


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

    async def slow(request: bytes, _context: Context) -> bytes:
        began.set()
        await go_on.wait()
        return request

    async with (
        start_server([make_service(Slow=slow)], ServerSettings(grace_seconds=30)) as server,
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


async def test_a_caller_that_writes_on_after_its_handler_aborted_does_not_wait(reach: Reach) -> None:
    async def refuse(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        yield await anext(requests)
        await context.abort(grpc.StatusCode.ABORTED, "no")

    service = make_service(Refuse=both_streams(refuse), Echo=echo)
    async with start_server([service]) as server, reach(server) as there, asyncio.timeout(30):
        call = both_streams_method(there, "Refuse")()
        await call.write(b"first")
        for _ in range(20):
            await method(there, "Echo")(b"")
        with suppress(grpc.aio.AioRpcError):  # gRPC says so before the answer is read
            for _ in range(4):
                await call.write(b"x" * 50_000)
        with pytest.raises(grpc.aio.AioRpcError):
            _ = [each async for each in _rest(call)]


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

    async def slow(request: bytes, _context: Context) -> bytes:
        began.set()
        await go_on.wait()
        return request

    async with start_server([make_service(Slow=slow)]) as server, asyncio.timeout(30):
        there = reach(server)
        call = method(there, "Slow")(b"answer")
        await began.wait()
        closing = asyncio.create_task(there.close(20))
        go_on.set()
        assert await call == b"answer"
        await closing
