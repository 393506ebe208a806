"""Calls that are passed on to the orchestrator, with what a caller sent for it: credentials, tenant, trace and deadline."""

import hashlib
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any, Final

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from starlette.requests import Request

from parley.edge.observation import measure_call
from parley.runtime.errors import ParleyError, from_rpc_error, is_transport, resource_exhausted, unavailable
from parley.runtime.watching import WatchStream, watch_events
from parley.v1 import orchestrator_pb2
from parley.v1.event_pb2 import Event
from parley.v1.orchestrator_pb2 import ListDebatesRequest, WatchDebateRequest

ORCHESTRATOR: Final = "parley.v1.OrchestratorService"
_LIST_DEBATES: Final = orchestrator_pb2.DESCRIPTOR.services_by_name["OrchestratorService"].methods_by_name[
    "ListDebates"
]
_PASSED: Final = ("authorization", "parley-tenant")
"""The trace comes from the context of the request (`observation.py`)."""
UNARY_SECONDS: Final = 120.0
"""The time of a call without a deadline; a stream has none then."""
_PATIENCE_SECONDS: Final = 60.0
"""How long a watch that broke is opened again and again."""


class OrchestratorCalls:
    """The orchestrator's RPCs. It alone decides what a caller may do."""

    def __init__(self, channel: grpc.aio.Channel, streams_per_caller: int) -> None:
        self._channel = channel
        self._limit = streams_per_caller
        self._streams: Counter[str] = Counter()

    async def call(
        self,
        method: MethodDescriptor,
        request: Message,
        headers: Mapping[str, str],
        seconds: float | None = None,
    ) -> Message:
        """Return the answer. Raise ParleyError as the orchestrator sent it, or if it does not answer."""
        multi = self._channel.unary_unary(_path(method), *_serializers(method))
        with measure_call(_name(method), "unary"):
            try:
                answer: Message = await multi(
                    request, metadata=select_metadata(headers), timeout=seconds or UNARY_SECONDS
                )
            except grpc.aio.AioRpcError as error:
                raise to_error(error) from None
        return answer

    async def check_reader(self, headers: Mapping[str, str]) -> None:
        """Raise ParleyError unless the orchestrator knows the caller, who may read debates."""
        await self.call(_LIST_DEBATES, ListDebatesRequest(page_size=1), headers)

    async def stream(
        self,
        method: MethodDescriptor,
        request: Message,
        headers: Mapping[str, str],
        client: str,
        seconds: float | None = None,
    ) -> AsyncGenerator[Message, None]:
        """Yield the answers; closing the generator ends the call at the orchestrator too. Raise ParleyError as `call`.

        `client` is the caller's address: streams are counted by it if there are no credentials.
        """
        with self.hold_stream(method, headers, client):
            call = self._open_stream(method, request, headers, seconds)
            try:
                async for each in call:
                    yield each
            except grpc.aio.AioRpcError as error:
                raise to_error(error) from None
            finally:
                call.cancel()

    async def watch(
        self, method: MethodDescriptor, debate_id: str, headers: Mapping[str, str]
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of a debate from the first one, over streams that are opened again when they break.

        It is not counted; `count_stream` does that. Raise ParleyError as `call`, or if no stream can be opened for a minute.
        """

        def open_after(sequence: int) -> WatchStream:
            request = WatchDebateRequest(debate_id=debate_id, after_sequence=sequence)
            stream: WatchStream = self._open_stream(method, request, headers, None)
            return stream

        try:
            async with aclosing(watch_events(open_after, 0, _PATIENCE_SECONDS)) as events:
                with measure_call(_name(method), "stream"):
                    async for each in events:
                        if isinstance(each, Event):
                            yield each
        except ParleyError as error:
            raise _explain(error) from None

    def open_unread(
        self,
        method: MethodDescriptor,
        request: Message,
        headers: Mapping[str, str],
        seconds: float | None = None,
    ) -> Any:
        """Return a call with a stream of answers, each the bytes of its message. It is neither counted nor measured; `hold_stream` does that."""
        multi: Any = self._channel.unary_stream(_path(method), _serializers(method)[0], None)
        return multi(request, metadata=select_metadata(headers), timeout=seconds)

    def _open_stream(
        self, method: MethodDescriptor, request: Message, headers: Mapping[str, str], seconds: float | None
    ) -> Any:
        multi = self._channel.unary_stream(_path(method), *_serializers(method))
        return multi(request, metadata=select_metadata(headers), timeout=seconds)

    @contextmanager
    def hold_stream(
        self, method: MethodDescriptor, headers: Mapping[str, str], client: str
    ) -> Iterator[None]:
        """Count and measure a stream of a caller while the block runs. Raise ParleyError if there are too many."""
        with self.count_stream(headers, client), measure_call(_name(method), "stream"):
            yield

    @contextmanager
    def count_stream(self, headers: Mapping[str, str], client: str) -> Iterator[None]:
        """Count one stream of a caller while the block runs. Raise ParleyError if there are too many."""
        caller = headers.get("authorization") or client
        key = hashlib.blake2b(caller.encode(errors="replace"), digest_size=16).hexdigest()
        if self._streams[key] >= self._limit:
            raise resource_exhausted(
                "TOO_MANY_STREAMS",
                f"this caller has {self._limit} streams open; close one, or raise PARLEY_EDGE_STREAMS_PER_CALLER",
            )
        self._streams[key] += 1
        try:
            yield
        finally:
            self._streams[key] -= 1
            if not self._streams[key]:
                del self._streams[key]


def _name(method: MethodDescriptor) -> str:
    return f"{method.containing_service.full_name}/{method.name}"


def _path(method: MethodDescriptor) -> str:
    return f"/{_name(method)}"


def _serializers(method: MethodDescriptor) -> tuple[Any, Any]:
    return GetMessageClass(method.input_type).SerializeToString, GetMessageClass(
        method.output_type
    ).FromString


def find_address(request: Request) -> str:
    """Return the caller's address, by which streams are counted without credentials; empty if it is not known."""
    return request.client.host if request.client else ""


def select_metadata(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what is passed on of the headers that a caller sent."""
    return [(name, headers[name]) for name in _PASSED if headers.get(name, "").isascii() and name in headers]


def to_error(error: grpc.aio.AioRpcError) -> ParleyError:
    """Return the error of a call, as the orchestrator sent it or as a caller understands it."""
    return _explain(from_rpc_error(error))


def _explain(error: ParleyError) -> ParleyError:
    """Return the error; of a connection that failed, what that means to a caller."""
    if is_transport(error) and not error.reason:
        return unavailable(
            "ORCHESTRATOR_UNAVAILABLE", "the orchestrator does not answer; try again", retry_after=1.0
        )
    return error
