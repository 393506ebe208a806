"""What a call promises to caller and handler, over a server's port and from its own process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from parley.runtime.server import start_server
from tests.integration.runtime.conftest import Reach
from tests.integration.runtime.handlers import (
    Context,
    code_of,
    count_up,
    echo,
    echo_each,
    handle_both_streams,
    join,
    make_both_streams_method,
)
from tests.integration.runtime.test_flow_of_messages import _rest
from tests.integration.runtime.wire import (
    client_stream,
    collect_method,
    make_service,
    method,
    stream_method,
)


async def test_each_shape_of_call_answers(reach: Reach) -> None:
    service = make_service(
        Echo=echo, Count=count_up, Join=client_stream(join), EchoEach=handle_both_streams(echo_each)
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
        assert [each async for each in make_both_streams_method(there, "EchoEach")(letters())] == [
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
        start_server([make_service(EchoEach=handle_both_streams(echo_each))]) as server,
        reach(server) as there,
    ):
        call = make_both_streams_method(there, "EchoEach")()
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


async def test_a_caller_that_writes_on_after_its_handler_aborted_does_not_wait(reach: Reach) -> None:
    async def refuse(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        yield await anext(requests)
        await context.abort(grpc.StatusCode.ABORTED, "no")

    service = make_service(Refuse=handle_both_streams(refuse), Echo=echo)
    async with start_server([service]) as server, reach(server) as there, asyncio.timeout(30):
        call = make_both_streams_method(there, "Refuse")()
        await call.write(b"first")
        for _ in range(20):
            await method(there, "Echo")(b"")
        with suppress(grpc.aio.AioRpcError):  # gRPC says so before the answer is read
            for _ in range(4):
                await call.write(b"x" * 50_000)
        with pytest.raises(grpc.aio.AioRpcError):
            _ = [each async for each in _rest(call)]
