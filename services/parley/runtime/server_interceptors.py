"""The interceptor of incoming calls: deadline, caller, span, labels in the logs, and errors with details."""

import asyncio
import errno
import inspect
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import TYPE_CHECKING, Any, Final, cast

import grpc
from msgspec import Struct
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode

from parley.runtime import audit, deadline, errors, logs, telemetry
from parley.runtime.acts import Act, Acts, set_act, unrecorded
from parley.runtime.direct.context import DirectContext
from parley.runtime.identity.guard import AUTHORIZATION, OPEN, SERVICE_TOKEN, Credentials, Guard, bearer_token
from parley.runtime.identity.identity import is_tenant, set_identity
from parley.runtime.labels import LABELS, labels, set_labels
from parley.runtime.message_limits import max_request_bytes
from parley.runtime.request_reading import PublicRequestReader, PublicSlots, RequestReader

# Probes and tools call these all the time, and they reveal nothing; a span for each would hide the rest.
_PUBLIC: Final = ("/grpc.health.", "/grpc.reflection.")
_TENANT: Final = LABELS["tenant"]
_DEBATE: Final = LABELS["debate"]
_MAX_LABEL: Final = 128
# Faults of the server; the other codes are answers, and their spans are not errors.
_FAULTS: Final = frozenset(
    {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)

_ADMITTED: Final = nullcontext()
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE})

_logger = logs.get_logger(__name__)
_tracer = telemetry.tracer("parley.runtime")

Admission = Callable[[str, str], AbstractAsyncContextManager[None]]
"""Admits a tenant's call of a method while the block runs. Raises ParleyError."""

_Context = grpc.aio.ServicerContext[Any, Any]
_Read = Callable[[_Context], Awaitable[Any]]
# The stubs describe the threaded variants; here they are coroutines and async generators.
_Handler = Any
if TYPE_CHECKING:  # subscriptable in the stubs only
    _Method = grpc.RpcMethodHandler[Any, Any]
else:
    _Method = grpc.RpcMethodHandler


class CallInterceptor(grpc.aio.ServerInterceptor):
    """One interceptor for everything: each further one would cost every call another layer."""

    def __init__(
        self,
        guard: Guard,
        admissions: Mapping[str, Admission] | None,
        acts: Mapping[str, Acts] | None,
    ) -> None:
        """Admit callers that `guard` accepts, if the service's admission, if it has one, admits the tenant.

        `acts` records the calls of services, by their names.
        """
        self._guard = guard
        self._admissions = admissions or {}
        self._acts = acts or {}
        self._public_slots = {prefix: PublicSlots() for prefix in _PUBLIC}
        self._wrapped: dict[str, tuple[_Method, _Method]] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Method | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Method | None:
        """Return the method's handler, wrapped once and cached."""
        handler = await continuation(handler_call_details)
        return None if handler is None else self.wrap(handler_call_details.method, handler)

    def wrap(self, method: str, handler: _Method) -> _Method:
        """Return a method's handler, wrapped once and cached."""
        known = self._wrapped.get(method)
        if known is None or known[0] is not handler:
            known = self._wrapped[method] = (handler, self._wrap(method, handler))
        return known[1]

    def _wrap(self, method: str, handler: _Method) -> _Method:
        name, decode = method.removeprefix("/"), handler.request_deserializer
        for prefix, slots in self._public_slots.items():
            if method.startswith(prefix):
                reader = PublicRequestReader(name, decode, slots)
                return _wrap(name, handler, reader, _Door(OPEN, None, is_traced=False))
        service = name.partition("/")[0]
        door = _Door(self._guard, self._admissions.get(service), self._acts.get(service, unrecorded))
        return _wrap(name, handler, RequestReader(name, decode, max_request_bytes(name)), door)


class _Door(Struct, frozen=True):
    """Where a method's callers enter.

    Attributes:
        admission: None: every tenant is admitted.
        record: Returns the act of a call.
        is_traced: Whether each call has a span.
    """

    guard: Guard
    admission: Admission | None
    record: Acts = unrecorded
    is_traced: bool = True

    def admit_tenant(self, method: str, tenant: str) -> AbstractAsyncContextManager[None]:
        """Admit a tenant's call while the block runs. The code that reads an invalid tenant name refuses it."""
        if self.admission is None or not is_tenant(tenant):
            return _ADMITTED
        return self.admission(method, tenant)


def _wrap(method: str, handler: _Method, reader: RequestReader, door: _Door) -> _Method:
    """Return a handler that reads no request before its caller is admitted.

    gRPC reads the request of a unary handler before it calls it, so that to gRPC every handler reads a stream.
    """
    handle = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream

    async def read_each(context: _Context) -> Any:
        return reader.read_each(context)

    read = read_each if handler.request_streaming else reader.read_one
    if handler.response_streaming:
        return grpc.stream_stream_rpc_method_handler(
            _wrap_stream(method, handle, read, door),
            response_serializer=_pass_bytes(handler.response_serializer),
        )
    return grpc.stream_unary_rpc_method_handler(
        _wrap_unary(method, handle, read, door), response_serializer=handler.response_serializer
    )


def _pass_bytes(serialize: Callable[[Any], bytes] | None) -> Callable[[Any], bytes] | None:
    """Return a serializer that passes on what is serialized already: a handler may send one message to many callers."""
    if serialize is None:
        return None
    return lambda message: message if isinstance(message, bytes) else serialize(message)


def _wrap_unary(method: str, handle: _Handler, read: _Read, door: _Door) -> _Handler:
    if not inspect.iscoroutinefunction(handle):
        raise TypeError(f"{method}: a handler must be async")

    async def handle_call(_requests: object, context: _Context) -> Any:
        span, act, shown = _begin(method, context, door)
        try:
            async with door.admit_tenant(method, await _admit(method, shown, door.guard, span)):
                request = await read(context)
                await act.start(request)
                response = await handle(request, context)
                act.finish(response)
        except BaseException as error:
            answer = _fail(method, context, span, error)
            act.fail(answer)
            if answer is not None:
                await _abort(context, answer)
            raise
        _end(span, _code(context))
        return response

    return handle_call


def _wrap_stream(method: str, handle: _Handler, read: _Read, door: _Door) -> _Handler:
    """Write the generator's messages here, so that the generator is closed at once if the stream is cut while writing."""
    generator = inspect.isasyncgenfunction(handle)
    if not generator and not inspect.iscoroutinefunction(handle):
        raise TypeError(f"{method}: a handler must be async")

    async def handle_call(_requests: object, context: _Context) -> None:
        span, act, shown = _begin(method, context, door)
        try:
            async with door.admit_tenant(method, await _admit(method, shown, door.guard, span)):
                request = await read(context)
                await act.start(request)
                answering = handle(request, context)
                del request  # it may be large, and a stream may last
                if generator:
                    async with aclosing(answering) as responses:
                        async for response in responses:
                            act.finish()
                            await context.write(response)
                else:
                    await answering
                act.finish()
        except BaseException as error:
            answer = _fail(method, context, span, error)
            act.fail(answer)
            if answer is not None:
                await _abort(context, answer)
            raise
        _end(span, _code(context))

    return handle_call


def _begin(method: str, context: _Context, door: _Door) -> tuple[trace.Span, Act, Credentials]:
    """Set this call's deadline, labels, span and act; nothing is inherited from the task that started it."""
    found = {key: str(value) for key, value in context.invocation_metadata() or ()}
    about = {"debate": found[_DEBATE][:_MAX_LABEL]} if _DEBATE in found else {}
    deadline.set_call_deadline(context.time_remaining())
    set_labels(about)
    audit.set_call(method, context.peer)
    act = door.record(method)
    set_act(act)
    span = _start_span(method, telemetry.extract(found), about) if door.is_traced else trace.INVALID_SPAN
    shown = Credentials(
        bearer_token(found.get(AUTHORIZATION, "")),
        found.get(SERVICE_TOKEN, ""),
        found.get(_TENANT, "")[:_MAX_LABEL],
        context.auth_context,
        context.caller if isinstance(context, DirectContext) else None,
    )
    return span, act, shown


def _start_span(method: str, parent: Context, about: dict[str, str]) -> trace.Span:
    span = _tracer.start_span(
        method,
        parent,
        SpanKind.SERVER,
        attributes={"rpc.system.name": "grpc", "rpc.method": method, **_span_labels(about)},
    )
    if span is not trace.INVALID_SPAN:
        otel_context.attach(trace.set_span_in_context(span, parent))
    return span


async def _admit(method: str, shown: Credentials, guard: Guard, span: trace.Span) -> str:
    """Authenticate the caller, set its tenant for logs, spans and outgoing calls, and return it. Raise ParleyError."""
    identity = await guard.admit(method, shown)
    set_identity(identity)
    set_labels({"tenant": identity.tenant, **labels()})
    if span.is_recording():
        span.set_attribute("parley.tenant", identity.tenant)
    return identity.tenant


def _span_labels(labels: dict[str, str]) -> dict[str, str]:
    return {f"parley.{name}": value for name, value in labels.items()}


def _end(span: trace.Span, code: grpc.StatusCode, message: str = "") -> None:
    if span.is_recording():
        span.set_attribute("rpc.response.status_code", code.name)
        if code in _FAULTS:
            span.set_attribute("error.type", code.name)
            span.set_status(Status(StatusCode.ERROR, message or None))
    span.end()


def _fail(
    method: str, context: _Context, span: trace.Span, error: BaseException
) -> errors.ParleyError | None:
    """End the span; return the error for the caller, or None if `error` is raised as it is."""
    if isinstance(error, grpc.aio.AbortError):
        _end(span, _code(context), context.details())
        return None
    if _was_cancelled(error):
        _end(span, grpc.StatusCode.DEADLINE_EXCEEDED if _is_late() else grpc.StatusCode.CANCELLED)
        return None
    if not isinstance(error, Exception | asyncio.CancelledError):  # KeyboardInterrupt, SystemExit
        _end(span, grpc.StatusCode.UNKNOWN)
        return None
    answer = _error_answer(method, error)
    audit.report_error(answer)
    _end(span, answer.code, answer.message)
    return answer


def _is_late() -> bool:
    """Return whether the deadline has passed, or only the margin is left that outgoing calls do not get."""
    left = deadline.remaining()
    return left is not None and left <= deadline.MARGIN_SECONDS


def _was_cancelled(error: BaseException) -> bool:
    """Return whether the call itself was cancelled, and not only a task that its handler awaited."""
    if isinstance(error, grpc.aio.InternalError):  # a message could not be sent: the client is gone
        return True
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _error_answer(method: str, error: BaseException) -> errors.ParleyError:
    cause = next(_own_errors(error), error)
    if isinstance(cause, errors.ParleyError):
        return cause
    if isinstance(cause, asyncio.CancelledError):
        # Otherwise gRPC would let the caller wait for its deadline.
        return errors.unavailable(errors.INTERRUPTED, "the service stopped this call; try again")
    if (of_upstream := _find_upstream_error(cause)) is not None:
        return of_upstream
    if isinstance(cause, OSError) and cause.errno in _NO_ROOM:
        _logger.warning("call refused: this process may open no more files", method=method, error=str(cause))
        message = "this service may open no more files or connections now; try again"
        return errors.unavailable("OUT_OF_DESCRIPTORS", message, retry_after=1.0)
    error_id = uuid.uuid4().hex[:12]
    _logger.error("call failed", method=method, error_id=error_id, exc_info=error)
    return errors.internal(
        f"internal error; see the service's log for {error_id}", metadata={"error_id": error_id}
    )


def _find_upstream_error(cause: BaseException) -> errors.ParleyError | None:
    """Return the error of a call whose own deadline passed, or that a service it needs did not answer; else None."""
    unanswered = isinstance(cause, grpc.aio.AioRpcError) and (
        errors.is_transport(cause) or cause.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    )
    if _is_late() and (unanswered or isinstance(cause, TimeoutError)):
        return errors.deadline_exceeded("the deadline passed before there was an answer")
    if isinstance(cause, grpc.aio.AioRpcError) and cause.code() is grpc.StatusCode.UNAUTHENTICATED:
        message = "a service that this call needs does not accept our credentials; set the same PARLEY_SERVICE_SECRET for both"
        return errors.unavailable("UPSTREAM_UNAVAILABLE", message)
    if unanswered:
        return errors.unavailable("UPSTREAM_UNAVAILABLE", "a service that this call needs does not answer")
    return None


def _own_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield the ParleyErrors in an exception group, as a task group raises it."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _own_errors(inner)
    elif isinstance(error, errors.ParleyError):
        yield error


async def _abort(context: _Context, answer: errors.ParleyError) -> None:
    """End the call by raising, for a single answer and in mid-stream; details are in the trailing metadata."""
    answer.__traceback__ = (
        None  # its frames have the request and `answer`; that cycle would last until it is collected
    )
    status = errors.to_status(answer)
    trailing = (*(context.trailing_metadata() or ()), (errors.DETAILS_KEY, status.SerializeToString()))
    await context.abort(answer.code, status.message, trailing)


def _code(context: _Context) -> grpc.StatusCode:
    """Return the code that the handler set; whatever the stubs say, it is None if it set nothing."""
    return cast("grpc.StatusCode | None", context.code()) or grpc.StatusCode.OK
