import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import grpc
import pytest

from parley.runtime import deadline, errors
from parley.runtime.server import start_server
from tests.integration.runtime.conftest import Reach
from tests.integration.runtime.wire import make_service, method, stream_method
from tests.support.catching import catch_error
from tests.support.deadlines import deadline_in


async def tell(_request: bytes, _context: object) -> bytes:
    return repr(deadline.remaining()).encode()


async def test_a_deadline_goes_through_two_hops_and_gets_shorter_by_a_margin_at_each(reach: Reach) -> None:
    async with start_server([make_service(Tell=tell)]) as last, reach(last) as to_last:

        async def pass_on(request: bytes, _context: object) -> bytes:
            here = deadline.remaining()
            answer: bytes = await method(to_last, "Tell")(request)
            return f"{here} ".encode() + answer

        async with start_server([make_service(Ask=pass_on)]) as first, reach(first) as to_first:
            with deadline_in(10):
                answer = await method(to_first, "Ask")(b"")
    middle, end = (float(each) for each in answer.split())
    assert 5.0 < middle <= 10 - deadline.MARGIN_SECONDS + 0.01
    assert 5.0 < end <= middle - deadline.MARGIN_SECONDS + 0.01


async def test_the_smaller_of_a_calls_own_timeout_and_what_is_left_counts(reach: Reach) -> None:
    async with start_server([make_service(Tell=tell)]) as server, reach(server) as there:
        with deadline_in(5):
            own = await method(there, "Tell")(b"", timeout=2)
            ambient = await method(there, "Tell")(b"", timeout=60)
        none = await method(there, "Tell")(b"")
    assert 0 < float(own) <= 2.01
    assert 2.01 < float(ambient) <= 5 - deadline.MARGIN_SECONDS + 0.01
    assert none == b"None"


async def test_a_call_takes_no_deadline_from_where_the_server_was_started(reach: Reach) -> None:
    async with AsyncExitStack() as stack:
        with deadline_in(3):
            server = await stack.enter_async_context(start_server([make_service(Tell=tell)]))
        async with reach(server) as there:
            assert await method(there, "Tell")(b"") == b"None"


async def test_a_deadline_that_passed_fails_the_call_without_asking_anyone(reach: Reach) -> None:
    asked = asyncio.Event()

    async def notice(_request: bytes, _context: object) -> bytes:
        asked.set()
        return b""

    async with start_server([make_service(Ask=notice)]) as server, reach(server) as there:
        with deadline_in(0), pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(there, "Ask")(b"")
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert not errors.is_transport(caught.value)
    assert not asked.is_set()


async def test_the_margin_leaves_time_to_say_which_call_was_too_slow(
    reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "MARGIN_SECONDS", 1.5)  # a busy machine needs more of it
    monkeypatch.setattr(deadline, "MARGIN_SHARE", 0.5)

    async def wait_forever(_request: bytes, _context: object) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with start_server([make_service(Ask=wait_forever)]) as last, reach(last) as to_last:

        async def pass_on(request: bytes, _context: object) -> bytes:
            try:
                answer: bytes = await method(to_last, "Ask")(request)
            except grpc.aio.AioRpcError as error:
                raise errors.deadline_exceeded("the last one was too slow", reason="LAST_SLOW") from error
            return answer

        async with start_server([make_service(Ask=pass_on)]) as first, reach(first) as to_first:
            error = await catch_error(method(to_first, "Ask")(b"", timeout=3))
    assert error.reason == "LAST_SLOW"


@pytest.mark.parametrize("kind", ["unary", "stream", "half-read stream"])
async def test_a_client_that_hangs_up_cancels_the_second_hop_too(reach: Reach, kind: str) -> None:
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def wait_until_cancelled() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def wait(_request: bytes, _context: object) -> bytes:
        await wait_until_cancelled()
        return b""

    async def flow(_request: bytes, _context: object) -> AsyncIterator[bytes]:
        yield b"first"
        await wait_until_cancelled()

    async with start_server([make_service(Wait=wait, Flow=flow)]) as last, reach(last) as to_last:

        async def pass_wait(request: bytes, _context: object) -> bytes:
            answer: bytes = await method(to_last, "Wait")(request)
            return answer

        async def pass_flow(request: bytes, _context: object) -> AsyncIterator[bytes]:
            async for message in stream_method(to_last, "Flow")(request):
                yield message

        service = make_service(Wait=pass_wait, Flow=pass_flow)
        async with start_server([service]) as first, reach(first) as to_first, asyncio.timeout(20):
            call = method(to_first, "Wait")(b"") if kind == "unary" else stream_method(to_first, "Flow")(b"")
            if kind == "half-read stream":
                assert await call.read() == b"first"
            await began.wait()
            call.cancel()
            await cancelled.wait()
