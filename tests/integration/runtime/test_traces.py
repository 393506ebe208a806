import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import grpc
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from parley.runtime import errors, telemetry
from parley.runtime.labels import label_scope, labels
from parley.runtime.server import start_server
from tests.integration.runtime.conftest import Reach
from tests.integration.runtime.wire import make_service, method, stream_method
from tests.support.spans import forget_spans, spans_when

SERVICE = "test.v1.TestService"


@pytest.fixture(autouse=True)
def _recording() -> None:
    forget_spans()


def pick(spans: Sequence[ReadableSpan], name: str, kind: SpanKind) -> ReadableSpan:
    (span,) = [each for each in spans if each.name == f"{SERVICE}/{name}" and each.kind is kind]
    return span


def code(span: ReadableSpan) -> object:
    return (span.attributes or {})["rpc.response.status_code"]


def parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


async def test_two_hops_are_one_trace_with_each_span_under_the_one_that_caused_it(reach: Reach) -> None:
    async def answer_last(_request: bytes, _context: object) -> bytes:
        return b""

    async with start_server([make_service(Last=answer_last)]) as far, reach(far) as to_far:

        async def call_on(request: bytes, _context: object) -> bytes:
            answer: bytes = await method(to_far, "Last")(request)
            return answer

        async with start_server([make_service(First=call_on)]) as near, reach(near) as to_near:
            with telemetry.tracer("test").start_as_current_span("debate"):
                await method(to_near, "First")(b"")
            spans = await spans_when(lambda spans: len(spans) == 5)
    (root,) = [span for span in spans if span.name == "debate"]
    chain = [
        root,
        pick(spans, "First", SpanKind.CLIENT),
        pick(spans, "First", SpanKind.SERVER),
        pick(spans, "Last", SpanKind.CLIENT),
        pick(spans, "Last", SpanKind.SERVER),
    ]
    for above, below in pairwise(chain):
        assert parent(below) == above.context.span_id
        assert below.context.trace_id == root.context.trace_id
        assert code(below) == "OK"
        assert below.status.status_code is StatusCode.UNSET


async def test_a_handlers_exception_is_an_error_on_both_spans(reach: Reach) -> None:
    async def divide_by_zero(_request: bytes, _context: object) -> bytes:
        raise ZeroDivisionError

    async with start_server([make_service(Ask=divide_by_zero)]) as server, reach(server) as there:
        with pytest.raises(grpc.aio.AioRpcError):
            await method(there, "Ask")(b"")
        spans = await spans_when(lambda spans: len(spans) == 2)
    assert [code(span) for span in spans] == ["INTERNAL"] * 2
    assert [span.status.status_code for span in spans] == [StatusCode.ERROR] * 2


async def test_an_answer_that_refuses_is_no_fault_of_the_server(reach: Reach) -> None:
    async def fail_as_absent(_request: bytes, _context: object) -> bytes:
        raise errors.not_found("debate", "deb-1")

    async def abort_call(_request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        await context.abort(grpc.StatusCode.NOT_FOUND, "no")

    async with start_server([make_service(A=fail_as_absent, B=abort_call)]) as server, reach(server) as there:
        for name in ("A", "B"):
            with pytest.raises(grpc.aio.AioRpcError):
                await method(there, name)(b"")
        spans = await spans_when(lambda spans: len(spans) == 4)
    for name in ("A", "B"):
        served, called = pick(spans, name, SpanKind.SERVER), pick(spans, name, SpanKind.CLIENT)
        assert (code(served), served.status.status_code) == ("NOT_FOUND", StatusCode.UNSET)
        assert (code(called), called.status.status_code) == ("NOT_FOUND", StatusCode.ERROR)


@pytest.mark.parametrize("read", [0, 1])
async def test_a_cancelled_stream_leaves_no_span_open(reach: Reach, read: int) -> None:
    began = asyncio.Event()

    async def flow(_request: bytes, _context: object) -> AsyncIterator[bytes]:
        yield b"first"
        began.set()
        await asyncio.Event().wait()

    async with start_server([make_service(Flow=flow)]) as server, reach(server) as there:
        call = stream_method(there, "Flow")(b"")
        for _ in range(read):
            assert await call.read() == b"first"
        await began.wait()
        call.cancel()
        spans = await spans_when(lambda spans: len(spans) == 2)
    assert {code(span) for span in spans} == {"CANCELLED"}
    assert pick(spans, "Flow", SpanKind.CLIENT).status.status_code is StatusCode.ERROR


async def test_a_stream_cut_while_the_server_writes_closes_handler_and_span_at_once(reach: Reach) -> None:
    closed = asyncio.Event()

    async def flood(_request: bytes, _context: object) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 1_000_000
        finally:
            closed.set()

    async with start_server([make_service(Flood=flood)]) as server, reach(server) as there:
        call = stream_method(there, "Flood")(b"")
        await call.read()
        call.cancel()
        async with asyncio.timeout(30):
            await closed.wait()
        spans = await spans_when(lambda spans: len(spans) == 2)
    assert code(pick(spans, "Flood", SpanKind.SERVER)) == "CANCELLED"


async def test_a_stream_that_was_left_half_read_ends_at_once_on_both_sides(reach: Reach) -> None:
    async def flow(_request: bytes, _context: object) -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.Event().wait()

    async def read_one(there: grpc.aio.Channel) -> None:
        async for _message in stream_method(there, "Flow")(b""):
            return

    async with start_server([make_service(Flow=flow)]) as server, reach(server) as there:
        gc.disable()
        try:
            await read_one(there)
            spans = await spans_when(lambda spans: len(spans) == 2)
        finally:
            gc.enable()
    assert {code(span) for span in spans} == {"CANCELLED"}


async def test_a_call_cancelled_before_it_left_ends_its_span(reach: Reach) -> None:
    async def echo(request: bytes, _context: object) -> bytes:
        return request

    async with start_server([make_service(Echo=echo)]) as server, reach(server) as there:
        call = method(there, "Echo")(b"")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        spans = await spans_when(lambda spans: any(span.kind is SpanKind.CLIENT for span in spans))
    assert code(pick(spans, "Echo", SpanKind.CLIENT)) == "CANCELLED"


async def test_a_deadline_that_ran_out_is_told_apart_from_a_cancellation(reach: Reach) -> None:
    async def wait_forever(_request: bytes, _context: object) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with start_server([make_service(Slow=wait_forever)]) as server, reach(server) as there:
        with pytest.raises(grpc.aio.AioRpcError):
            await method(there, "Slow")(b"", timeout=3)
        spans = await spans_when(lambda spans: len(spans) == 2)
    assert {code(span) for span in spans} == {"DEADLINE_EXCEEDED"}


async def test_health_probes_leave_no_server_span(reach: Reach) -> None:
    async def echo(request: bytes, _context: object) -> bytes:
        return request

    async with start_server([make_service(Echo=echo)]) as server, reach(server) as there:
        await method(there, "Check", "grpc.health.v1.Health")(b"")
        await method(there, "Echo")(b"")
        spans = await spans_when(lambda spans: len(spans) >= 3)
    assert not [span for span in spans if span.kind is SpanKind.SERVER and "health" in span.name]


async def test_tenant_and_debate_go_with_a_call_into_the_next_services_logs(reach: Reach) -> None:
    async def tell(_request: bytes, _context: object) -> bytes:
        return repr(dict(labels())).encode()

    async with start_server([make_service(Tell=tell)]) as last, reach(last) as to_last:

        async def pass_on(request: bytes, _context: object) -> bytes:
            answer: bytes = await method(to_last, "Tell")(request)
            return answer

        async with start_server([make_service(Ask=pass_on)]) as first, reach(first) as to_first:
            with label_scope(tenant="acme", debate="deb-1"):
                with_labels = await method(to_first, "Ask")(b"")
            bare = await method(to_first, "Ask")(b"")
    assert with_labels == repr({"tenant": "acme", "debate": "deb-1"}).encode()
    assert bare == repr({"tenant": "default"}).encode()
