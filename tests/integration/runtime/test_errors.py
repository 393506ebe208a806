import asyncio
import errno
import os
from collections.abc import AsyncIterator

import grpc
import pytest

from parley.runtime import errors
from parley.runtime.channel import channel
from parley.runtime.errors import FieldViolation, ParleyError
from parley.runtime.server import start_server
from tests.integration.runtime.conftest import Reach
from tests.integration.runtime.wire import (
    client_stream,
    collect_method,
    make_service,
    method,
    stream,
    stream_method,
)
from tests.support.catching import catch_error

ERROR = ParleyError(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    "BUDGET_SPENT",
    "the debate's budget is spent; raise it",
    metadata={"limit": "tokens"},
    violations=(FieldViolation("settings.budget", "spent"),),
    retry_after=1.5,
    resource=("debate", "deb-1"),
)


async def fail(request: bytes, _context: object) -> bytes:
    raise ERROR


async def fail_midway(request: bytes, _context: object) -> AsyncIterator[bytes]:
    yield b"first"
    raise ERROR


def assert_same(read: ParleyError) -> None:
    for name in ("code", "reason", "message", "metadata", "violations", "retry_after", "resource"):
        assert getattr(read, name) == getattr(ERROR, name)


async def test_every_detail_of_an_error_reaches_the_caller(reach: Reach) -> None:
    async with start_server([make_service(Ask=fail)]) as server, reach(server) as there:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(there, "Ask")(b"")
    assert_same(errors.from_rpc_error(caught.value))
    assert not errors.is_transport(caught.value)


async def test_an_error_in_mid_stream_comes_after_what_was_sent_with_every_detail(reach: Reach) -> None:
    async with start_server([make_service(Watch=fail_midway)]) as server, reach(server) as there:
        call = stream_method(there, "Watch")(b"")
        assert await call.read() == b"first"
        error = await catch_error(call.read())
    assert_same(error)


async def test_metadata_a_handler_set_before_it_failed_still_arrives(reach: Reach) -> None:
    async def fail_with_tag(_request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        context.set_trailing_metadata((("tag", "kept"),))
        raise errors.not_found("debate", "deb-1")

    async with start_server([make_service(Ask=fail_with_tag)]) as server, reach(server) as there:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(there, "Ask")(b"")
    trailing = caught.value.trailing_metadata()
    assert trailing is not None
    assert trailing["tag"] == "kept"
    assert errors.from_rpc_error(caught.value).reason == "DEBATE_NOT_FOUND"


async def test_an_unexpected_exception_tells_the_caller_an_id_and_the_log_the_rest(
    reach: Reach,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def divide_by_zero(_request: bytes, _context: object) -> bytes:
        raise ZeroDivisionError("a secret of the inside")

    async with start_server([make_service(Ask=divide_by_zero)]) as server, reach(server) as there:
        error = await catch_error(method(there, "Ask")(b""))
    assert (error.code, error.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert "secret" not in error.message
    captured = capsys.readouterr()
    logged = captured.out + captured.err
    assert error.metadata["error_id"] in logged
    assert "ZeroDivisionError" in logged


async def test_an_error_out_of_a_task_group_is_told_as_itself(reach: Reach) -> None:
    async def fail_in_group(request: bytes, context: object) -> bytes:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail(request, context))
        return b""

    async with start_server([make_service(Ask=fail_in_group)]) as server, reach(server) as there:
        error = await catch_error(method(there, "Ask")(b""))
    assert_same(error)


async def test_a_handler_whose_inner_task_was_cancelled_does_not_leave_its_caller_waiting(
    reach: Reach,
) -> None:
    async def interrupt_itself(_request: bytes, _context: object) -> bytes:
        inner = asyncio.create_task(asyncio.Event().wait())
        inner.cancel()
        await inner
        return b""

    async with start_server([make_service(Ask=interrupt_itself)]) as server, reach(server) as there:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(there, "Ask")(b"", timeout=20)
    assert errors.from_rpc_error(caught.value).reason == errors.INTERRUPTED
    assert errors.is_transport(caught.value)


async def test_an_unreachable_service_behind_this_one_is_unavailable_and_not_internal(reach: Reach) -> None:
    async with channel("127.0.0.1:1") as nowhere:

        async def ask_nowhere(request: bytes, _context: object) -> bytes:
            answer: bytes = await method(nowhere, "Ask")(request)
            return answer

        async with start_server([make_service(Ask=ask_nowhere)]) as server, reach(server) as there:
            error = await catch_error(method(there, "Ask")(b"", timeout=20))
    assert error.reason == "UPSTREAM_UNAVAILABLE"


async def test_a_server_that_is_not_there_is_a_transport_failure() -> None:
    async with channel("127.0.0.1:1") as nowhere:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(nowhere, "Ask")(b"", timeout=20)
    assert errors.is_transport(caught.value)
    assert errors.from_rpc_error(caught.value).reason == ""


async def test_a_method_nobody_has_is_an_answer_and_not_a_transport_failure(reach: Reach) -> None:
    async with start_server([make_service(Ask=fail)]) as server, reach(server) as there:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(there, "Other")(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert not errors.is_transport(caught.value)


async def test_a_client_stream_and_a_handler_that_writes_itself_fail_with_details_too(reach: Reach) -> None:
    async def fail_while_collecting(requests: AsyncIterator[bytes], _context: object) -> bytes:
        async for _ in requests:
            raise ERROR
        return b""

    async def write_and_fail(_request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        await context.write(b"first")
        raise ERROR

    service = make_service(Collect=client_stream(fail_while_collecting), Watch=stream(write_and_fail))
    async with start_server([service]) as server, reach(server) as there:
        error = await catch_error(collect_method(there, "Collect")(iter([b"1"])))
        assert_same(error)
        call = stream_method(there, "Watch")(b"")
        assert await call.read() == b"first"
        error = await catch_error(call.read())
        assert_same(error)


async def test_a_handler_that_is_not_async_is_refused_with_its_name(
    reach: Reach,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer_blocking(_request: bytes, _context: object) -> bytes:
        return b""

    async with (
        start_server([make_service(Ask=unary_of(answer_blocking))]) as server,
        reach(server) as there,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(there, "Ask")(b"", timeout=20)
    assert caught.value.code() is not grpc.StatusCode.DEADLINE_EXCEEDED


def unary_of(handler: object) -> "grpc.RpcMethodHandler[bytes, bytes]":
    return grpc.unary_unary_rpc_method_handler(handler)  # type: ignore[arg-type]


def undecodable(given: bytes) -> bytes:
    if given == b"bad":
        raise ValueError("Error parsing message")
    return given


async def echo(request: bytes, _context: object) -> bytes:
    return request


async def echoes(request: bytes, _context: object) -> AsyncIterator[bytes]:
    yield request


async def collect(requests: AsyncIterator[bytes], _context: object) -> bytes:
    return b"".join([each async for each in requests])


async def echo_each(requests: AsyncIterator[bytes], _context: object) -> AsyncIterator[bytes]:
    async for each in requests:
        yield each


@pytest.mark.parametrize("shape", ["unary_unary", "unary_stream", "stream_unary", "stream_stream"])
async def test_bytes_that_are_no_message_are_an_invalid_argument_without_a_traceback(
    reach: Reach, shape: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    handle = {
        "unary_unary": echo,
        "unary_stream": echoes,
        "stream_unary": collect,
        "stream_stream": echo_each,
    }[shape]
    made = getattr(grpc, f"{shape}_rpc_method_handler")(handle, request_deserializer=undecodable)
    async with start_server([make_service(Ask=made)]) as server, reach(server) as there:
        call = getattr(there, shape)("/test.v1.TestService/Ask")

        async def outcome(*given: bytes) -> list[bytes]:
            async def requests() -> AsyncIterator[bytes]:
                for each in given:
                    yield each

            answer = call(requests() if shape.startswith("stream") else given[0], timeout=10)
            return [each async for each in answer] if shape.endswith("stream") else [await answer]

        assert await outcome(b"good") == [b"good"]
        error = await catch_error(outcome(b"bad"))
        assert await outcome(b"good") == [b"good"], "the connection goes on"
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "UNDECODABLE")
    assert "test.v1.TestService/Ask" in error.message
    written = capfd.readouterr()
    assert "Traceback" not in written.out + written.err + caplog.text


async def test_very_many_bad_fields_and_a_very_long_message_still_reach_the_caller(reach: Reach) -> None:
    async def refuse(_request: bytes, _context: object) -> bytes:
        raise errors.invalid_argument([FieldViolation(f"agents[{n}]", "ж" * 500) for n in range(3000)])

    async with start_server([make_service(Ask=refuse)]) as server, reach(server) as there:
        error = await catch_error(method(there, "Ask")(b""))
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
    assert error.metadata == {"violations": "3000"}
    assert error.violations[0].field == "agents[0]"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
async def test_a_service_that_may_open_no_more_files_is_unavailable_for_now(
    reach: Reach, number: int
) -> None:
    async def open_something(_request: bytes, _context: object) -> bytes:
        raise OSError(number, os.strerror(number))

    async with (
        start_server([make_service(Ask=open_something)]) as server,
        reach(server) as there,
    ):
        refused = await catch_error(method(there, "Ask")(b""))
    assert (refused.code, refused.reason) == (grpc.StatusCode.UNAVAILABLE, "OUT_OF_DESCRIPTORS")
    assert refused.retry_after == 1
