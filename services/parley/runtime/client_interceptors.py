"""A channel whose calls carry the deadline, the trace, the labels and the credentials of the current work.

It wraps a channel instead of using grpc.aio's client interceptors: those start a task for every call,
and a call cancelled before that task ran never gets to its end.
"""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Self

import grpc
from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from parley.runtime import deadline, telemetry
from parley.runtime.labels import LABELS, labels

_tracer = telemetry.tracer("parley.runtime")

_Multi = Callable[..., Any]
_Headers = Callable[[], Sequence[tuple[str, str]]]


class WrappingChannel(grpc.aio.Channel):
    """A channel that calls over another one, and changes how."""

    @property
    @abstractmethod
    def inner(self) -> grpc.aio.Channel:
        """The other channel, as it is now."""

    @abstractmethod
    def wrap(self, kind: str, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of `inner` as it is called. `kind`: the name of what opens it, such as `unary_stream`."""

    async def __aenter__(self) -> Self:
        await self.inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Close the channel; running calls have `grace` seconds to end."""
        await self.inner.close(grace)

    def get_state(  # the signature is grpc.aio.Channel's
        self,
        try_to_connect: bool = False,  # noqa: FBT001, FBT002
    ) -> grpc.ChannelConnectivity:
        """Return the state of the connection."""
        return self.inner.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the state is another one."""
        await self.inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until there is a connection."""
        await self.inner.channel_ready()

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of one request and one answer."""
        return self.wrap("unary_unary", method, *args, **kwargs)

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of one request and a stream of answers."""
        return self.wrap("unary_stream", method, *args, **kwargs)

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of a stream of requests and one answer."""
        return self.wrap("stream_unary", method, *args, **kwargs)

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of a stream of requests and a stream of answers."""
        return self.wrap("stream_stream", method, *args, **kwargs)


class ContextChannel(WrappingChannel):
    """A channel whose calls get the remaining time, `traceparent`, labels, and a client span that always ends."""

    def __init__(self, inner: grpc.aio.Channel, headers: _Headers | None = None) -> None:
        """Call over `inner`; each call also carries the metadata that `headers` returns at that time."""
        self._inner = inner
        self._headers = headers or tuple

    @property
    def inner(self) -> grpc.aio.Channel:
        """The channel that it calls over."""
        return self._inner

    def wrap(self, kind: str, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method whose calls carry all of that; its stream of answers, if it has one, ends with the last reference."""
        call = _wrap_call(method, getattr(self._inner, kind)(method, *args, **kwargs), self._headers)
        return _wrap_stream(call) if kind.endswith("_stream") else call


def _wrap_call(path: str, multi: _Multi, headers: _Headers) -> _Multi:
    method = path.removeprefix("/")
    about = {"rpc.system.name": "grpc", "rpc.method": method}

    def call(
        request: Any = None,
        *,
        timeout: float | None = None,
        metadata: Sequence[tuple[str, str | bytes]] | None = None,
        **kwargs: Any,
    ) -> Any:
        span = _tracer.start_span(method, kind=SpanKind.CLIENT, attributes=about)
        allowed = deadline.timeout_for_call(timeout)
        if allowed is not None and allowed <= 0:
            raise _deadline_error(span)
        try:
            started = multi(
                request,
                timeout=allowed,
                metadata=[*_metadata(span, metadata), *headers()],
                **kwargs,
            )
        except BaseException:
            span.end()
            raise
        if span.is_recording():
            started.add_done_callback(_SpanEnd(span))
        return started

    return call


def _wrap_stream(multi: _Multi) -> _Multi:
    def call(*args: Any, **kwargs: Any) -> StreamCall:
        return StreamCall(multi(*args, **kwargs))

    return call


def _metadata(
    span: trace.Span, given: Sequence[tuple[str, str | bytes]] | None
) -> list[tuple[str, str | bytes]]:
    is_traced = span is not trace.INVALID_SPAN
    ambient = telemetry.inject(trace.set_span_in_context(span)) if is_traced else {}
    for name, value in labels().items():
        if value.isascii() and value.isprintable():
            ambient[LABELS[name]] = value
    if not given:
        return list(ambient.items())
    named = {key for key, _ in given}
    return [*given, *((key, value) for key, value in ambient.items() if key not in named)]


class StreamCall:
    """A call with a stream of answers that is cancelled when no code refers to it any more.

    grpc.aio's own stays alive in a reference cycle when an `async for` over it is left early, and
    the server goes on working without a reader until the garbage collector comes by.
    """

    def __init__(self, call: Any) -> None:
        self._call = call
        self._loop = asyncio.get_running_loop()

    def __del__(self) -> None:
        if self._call.done() or self._loop.is_closed():
            return
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._call.cancel()
        else:  # collected in another thread
            self._loop.call_soon_threadsafe(self._call.cancel)

    def __aiter__(self) -> "_Messages":
        return _Messages(self, self._call.__aiter__())

    async def read(self) -> Any:
        """Return the next message, or `grpc.aio.EOF`."""
        return await self._call.read()

    async def write(self, request: Any) -> None:
        """Send one message of a request stream."""
        await self._call.write(request)

    async def done_writing(self) -> None:
        """Say that no more messages will be sent."""
        await self._call.done_writing()

    async def wait_for_connection(self) -> None:
        """Wait until the call has reached a server."""
        await self._call.wait_for_connection()

    async def initial_metadata(self) -> Any:
        """Return what the server sent first."""
        return await self._call.initial_metadata()

    async def trailing_metadata(self) -> Any:
        """Wait for the end and return what the server sent last."""
        return await self._call.trailing_metadata()

    async def code(self) -> grpc.StatusCode:
        """Wait for the end and return how the call ended."""
        code: grpc.StatusCode = await self._call.code()
        return code

    async def details(self) -> str:
        """Wait for the end and return what the server said."""
        details: str = await self._call.details()
        return details

    def cancel(self) -> bool:
        """End the call, here and at the server; return False if it was over."""
        ended: bool = self._call.cancel()
        return ended

    def cancelled(self) -> bool:
        """Return whether the call was cancelled."""
        was: bool = self._call.cancelled()
        return was

    def done(self) -> bool:
        """Return whether the call is over."""
        over: bool = self._call.done()
        return over

    def time_remaining(self) -> float | None:
        """Return the seconds until the call's deadline; None without one."""
        left: float | None = self._call.time_remaining()
        return left

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call back when the call is over."""
        self._call.add_done_callback(callback)


class _Messages:
    """The messages of a call, which it keeps alive as long as they are read."""

    def __init__(self, owner: StreamCall, messages: AsyncIterator[Any]) -> None:
        self._owner = owner
        self._messages = messages

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[Any]:
        return self._messages.__anext__()


def _deadline_error(span: trace.Span) -> grpc.aio.AioRpcError:
    """Return the failure of a call that is never sent: gRPC would send it, and a quick server might do what it asks."""
    _end(span, grpc.StatusCode.DEADLINE_EXCEEDED)
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(
        grpc.StatusCode.DEADLINE_EXCEEDED, nothing, nothing, "the deadline passed before the call was made"
    )


class _SpanEnd:
    """The end of a span with its call, whichever way that came about: also dropped or half-read."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def __call__(self, call: Any) -> None:
        _end(self._span, _code_of(call))


def _end(span: trace.Span, code: grpc.StatusCode) -> None:
    span.set_attribute("rpc.response.status_code", code.name)
    if code is not grpc.StatusCode.OK:
        span.set_attribute("error.type", code.name)
        span.set_status(Status(StatusCode.ERROR))
    span.end()


def _code_of(call: Any) -> grpc.StatusCode:
    """Return the code of a call that is over: the coroutine has its answer, and ends at its first step."""
    answer = call.code()
    try:
        answer.send(None)
    except StopIteration as done:
        code: grpc.StatusCode = done.value
        return code
    answer.close()
    return grpc.StatusCode.UNKNOWN
