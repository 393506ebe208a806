"""Services that answer every call with messages in which each string is hostile, or refuse it in hostile words."""

import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_status import rpc_status

from parley.runtime.errors import FieldViolation, invalid_argument, to_status
from parley.v1 import gateway_pb2, orchestrator_pb2, ratings_pb2
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED
from parley.v1.event_pb2 import Event
from parley.v1.orchestrator_pb2 import ReadLogResponse, WatchDebateResponse
from tests.support.made_events import made_event

HOSTILE = (
    "a\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\\x1b[2J\x1b[8mgone"
    "\x9b31m\x9d0;t\x9c\u202eback\u2066\x08\x7f\x1b[A\rover\x0b\x0c\x85\u2028next\U000e0041\ufeffz"
)
"""Sequences that set a title, the clipboard, a link and colors, move the cursor, turn text around or hide in it."""

_DEEP = 5
_SERVICES = [
    module.DESCRIPTOR.services_by_name[name]
    for module, name in (
        (orchestrator_pb2, "OrchestratorService"),
        (gateway_pb2, "GatewayService"),
        (ratings_pb2, "RatingsService"),
    )
]
_LAST = ("concluded", "closed")


def fill_message(kind: Any, choice: int = 0, deep: int = 0) -> Any:
    """A message of a class or descriptor with something in every field, `HOSTILE` in each string; of fields that exclude each other, the one at this place."""
    message = GetMessageClass(getattr(kind, "DESCRIPTOR", kind))()
    for field in message.DESCRIPTOR.fields:
        if field.containing_oneof is None or _is_chosen(field, choice):
            _fill(message, field, choice, deep)
    return message


def _is_chosen(field: Any, choice: int) -> bool:
    among = field.containing_oneof.fields
    return bool(among[choice % len(among)].name == field.name)


def _fill(message: Any, field: Any, choice: int, deep: int) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        if field.message_type.fields_by_name["value"].type == FieldDescriptor.TYPE_STRING:
            getattr(message, field.name)[HOSTILE] = HOSTILE
        return
    if field.message_type is not None:
        if deep > _DEEP or field.message_type.full_name == "google.protobuf.Any":
            return
        value = fill_message(field.message_type, choice, deep + 1)
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            getattr(message, field.name).CopyFrom(value)
    elif field.is_repeated:
        getattr(message, field.name).append(_plain(field))
    else:
        setattr(message, field.name, _plain(field))


def _plain(field: Any) -> object:
    if field.type == FieldDescriptor.TYPE_STRING:
        return HOSTILE
    if field.type == FieldDescriptor.TYPE_BYTES:
        return b"\x1b"
    if field.enum_type is not None:
        return field.enum_type.values[-1].number
    return True if field.type == FieldDescriptor.TYPE_BOOL else 1


def _events(choice: int) -> Iterator[Event]:
    """One event of each kind, those last that end a debate."""
    kinds = [field.name for field in Event.DESCRIPTOR.oneofs_by_name["payload"].fields]
    ordered = [each for each in kinds if each not in {*_LAST, "debate_failed"}] + list(_LAST)
    for sequence, kind in enumerate(ordered, start=1):
        payload = fill_message(Event.DESCRIPTOR.fields_by_name[kind].message_type, choice)
        yield made_event(payload, key=f"{HOSTILE}/{sequence}", sequence=sequence)


@functools.cache
def _answers(response: Any, choice: int) -> Sequence[Message]:
    if response is WatchDebateResponse:
        return [WatchDebateResponse(event=each) for each in _events(choice)]
    if response is ReadLogResponse:
        return [ReadLogResponse(events=[each.SerializeToString()]) for each in _events(choice)]
    answer: Any = fill_message(response, choice)
    names = answer.DESCRIPTOR.fields_by_name
    if "next_page_token" in names:
        answer.next_page_token = ""
    if "debate" in names and "status" in answer.debate.DESCRIPTOR.fields_by_name:
        answer.debate.status = DEBATE_STATUS_COMPLETED
    return [answer]


@dataclass
class HostileServices:
    """The orchestrator, the gateway and the ratings at one address.

    Attributes:
        choice: Which of the fields that exclude each other are set, such as the outcomes of formats.
        refuses: Whether every call is refused.
    """

    address: str = ""
    choice: int = 0
    refuses: bool = False

    def method(self, response: Any, *, streams: bool) -> Callable[..., Any]:
        """Return what answers a call."""

        def answers(context: Any) -> Sequence[Message]:
            if self.refuses:
                refusal = invalid_argument([FieldViolation(HOSTILE, HOSTILE)])
                context.abort_with_status(rpc_status.to_status(to_status(refusal)))
            return _answers(response, self.choice)

        def unary(_: object, context: Any) -> Message:
            return answers(context)[0]

        def stream(_: object, context: Any) -> Iterator[Message]:
            yield from answers(context)

        return stream if streams else unary


@contextmanager
def hostile_services() -> Iterator[HostileServices]:
    """Serve them."""
    services = HostileServices()
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    for service in _SERVICES:
        handlers = {each.name: _handler(services, each) for each in service.methods}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
    services.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield services
    finally:
        server.stop(None).wait(5)


def _handler(services: HostileServices, method: Any) -> Any:
    response, streams = GetMessageClass(method.output_type), method.server_streaming
    kind = grpc.unary_stream_rpc_method_handler if streams else grpc.unary_unary_rpc_method_handler
    return kind(
        services.method(response, streams=streams),
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=response.SerializeToString,
    )
