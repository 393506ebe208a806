"""The contract's RPCs by the Connect protocol, with JSON or Protobuf, and by gRPC-web. No other module knows this library."""

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any as AnyValue
from typing import Final

from connectrpc.code import Code
from connectrpc.compat import google_protobuf_binary_codec
from connectrpc.errors import ConnectError, ErrorDetail
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.request import RequestContext
from connectrpc.server import ConnectASGIApplication, Endpoint
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode
from protobuf.wkt import Any  # the details of an error are of that library, also if messages are of Google's
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from parley.edge.calls import OrchestratorCalls
from parley.edge.json_messages import Answer, JsonCodec, Request, read_request, write_answer
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument, to_status
from parley.runtime.message_limits import MAX_FIELDS, find_crowded_field_in_bytes, max_request_bytes

_REQUEST_ID: Final = "request_id"
_IDEMPOTENCY_KEY: Final = "idempotency-key"
_CODES: Final[Mapping[StatusCode, Code]] = {
    each: Code.CANCELED if each is StatusCode.CANCELLED else Code[each.name]
    for each in StatusCode
    if each is not StatusCode.OK
}
_TYPE: Final = re.compile(r"application/(json|proto|connect\+(json|proto)|grpc-web)", re.IGNORECASE)
"""Media types of bodies, without their ends."""
_Context = RequestContext[Message, Message]


class ProtobufCodec:
    """Reads and writes messages as Protobuf. A message of very many fields is refused before it is read: each takes a hundred times its bytes."""

    def __init__(self) -> None:
        self._codec = google_protobuf_binary_codec()

    def name(self) -> str:
        """Return the end of the media types of which it is."""
        return self._codec.name()

    def decode(self, data: bytes | bytearray, message_class: type[Message]) -> Message:
        """Return the message. Raise ConnectError if it has too many fields."""
        if crowded := find_crowded_field_in_bytes(data, message_class.DESCRIPTOR):  # type: ignore[arg-type]
            problem = f"{crowded}: brings the message above {MAX_FIELDS:,} fields; send fewer"
            raise ConnectError(Code.INVALID_ARGUMENT, problem)
        message: Message = self._codec.decode(data, message_class)
        return message

    def encode(self, message: Message) -> bytes:
        """Return the message's bytes."""
        return self._codec.encode(message)


class RpcApplication(ConnectASGIApplication[OrchestratorCalls]):
    """One RPC as an ASGI application, with its own bound on the request's size. Nothing is unpacked: compression is refused."""

    def __init__(self, method: MethodDescriptor, calls: OrchestratorCalls) -> None:
        self._path = f"/{method.containing_service.full_name}/{method.name}"
        create = _create_stream if method.server_streaming else _create_unary
        super().__init__(
            service=calls,
            endpoints=lambda given: {self._path: create(method, given)},
            read_max_bytes=max_request_bytes(self._path.removeprefix("/")),
            compressions=(),
            codecs=[ProtobufCodec(), JsonCodec()],
        )

    @property
    def path(self) -> str:
        """The path that it answers."""
        return self._path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call; a body of another type is refused with the header to send, as `curl --data` needs it."""
        if scope["method"] == "POST" and not _TYPE.match(Headers(scope=scope).get("content-type", "")):
            text = "send the body as JSON, with the header Content-Type: application/json\n"
            await PlainTextResponse(text, 415)(scope, receive, send)
            return
        await super().__call__(scope, receive, send)


def _describe(method: MethodDescriptor) -> MethodInfo[Message, Message]:
    return MethodInfo(
        name=method.name,
        service_name=method.containing_service.full_name,
        input=GetMessageClass(method.input_type),
        output=GetMessageClass(method.output_type),
        idempotency_level=IdempotencyLevel.UNKNOWN,
        stream_type=StreamType.SERVER_STREAM if method.server_streaming else StreamType.UNARY,
    )


def _create_unary(method: MethodDescriptor, calls: OrchestratorCalls) -> AnyValue:
    async def call(request: Request, context: _Context) -> Answer:
        message = await _read(request)
        try:
            headers = _headers(context)
            _use_idempotency_key(message, headers)
            answer = await calls.call(method, message, headers, _seconds(context))
        except ParleyError as error:
            raise to_connect_error(error) from None
        return await write_answer(request, answer)

    function: Callable[..., AnyValue] = call
    return Endpoint.unary(_describe(method), function)


def _create_stream(method: MethodDescriptor, calls: OrchestratorCalls) -> AnyValue:
    async def call(request: Request, context: _Context) -> AsyncGenerator[Answer, None]:
        message = await _read(request)
        answers = calls.stream(
            method, message, _headers(context), context.client_address or "", _seconds(context)
        )
        try:
            async for each in answers:
                yield await write_answer(request, each)
        except ParleyError as error:
            raise to_connect_error(error) from None
        finally:
            await answers.aclose()

    function: Callable[..., AnyValue] = call
    return Endpoint.server_stream(_describe(method), function)


async def _read(request: Request) -> Message:
    """Return the message of a request. Raise ConnectError for JSON that is none."""
    try:
        return await read_request(request)
    except ValueError as error:
        raise ConnectError(Code.INVALID_ARGUMENT, str(error)) from None


def _headers(context: _Context) -> Mapping[str, str]:
    return {name.lower(): value for name, value in context.request_headers.items()}


def _seconds(context: _Context) -> float | None:
    left = context.timeout_ms
    return None if left is None else left / 1000


def _use_idempotency_key(request: Message, headers: Mapping[str, str]) -> None:
    """Use the header `Idempotency-Key` as the request id of a message that has one. Raise ParleyError if both are given and differ."""
    key = headers.get(_IDEMPOTENCY_KEY)
    if not key or _REQUEST_ID not in request.DESCRIPTOR.fields_by_name:
        return
    given = getattr(request, _REQUEST_ID)
    if given and given != key:
        raise invalid_argument(
            [FieldViolation(_REQUEST_ID, "differs from the header Idempotency-Key; give one of them")]
        )
    setattr(request, _REQUEST_ID, key)


def to_connect_error(error: ParleyError) -> ConnectError:
    """Return the error with the same code, message and details."""
    status = to_status(error)
    details = [ErrorDetail(Any(type_url=each.type_url, value=each.value)) for each in status.details]
    return ConnectError(_CODES[error.code], status.message, details)
