"""A channel to a server of the same process."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Self

import grpc

from parley.runtime.client_interceptors import ContextChannel
from parley.runtime.direct.calls import DirectCall, DirectStreamCall, DirectUnaryCall, Requests
from parley.runtime.direct.exchange import Exchange, to_metadata
from parley.runtime.direct.late_server import LateServer
from parley.runtime.direct.server import DirectServer
from parley.runtime.identity.identity import DEFAULT_TENANT, Identity
from parley.runtime.identity.service_tokens import service_identity
from parley.runtime.labels import labels

_Serialize = Callable[[Any], bytes] | None
_Deserialize = Callable[[bytes], Any] | None
_Given = Iterable[tuple[str, str | bytes]] | None


def direct_channel(
    server: DirectServer | LateServer, caller: Callable[[], Identity] | None = None
) -> grpc.aio.Channel:
    """Open a channel to a server of this process, as `channel()` does to any other.

    `caller` returns who calls, at each call, which needs no credentials then. None: calls are passed on for others, with theirs.
    """
    return ContextChannel(DirectChannel(server, caller))


def identify_service(name: str) -> Callable[[], Identity]:
    """Return a function that returns who a service is: it acts for the tenant of the current work."""
    return lambda: service_identity(name, labels().get("tenant", DEFAULT_TENANT))


class DirectChannel(grpc.aio.Channel):
    """Calls a server's methods without a socket."""

    def __init__(self, server: DirectServer | LateServer, caller: Callable[[], Identity] | None) -> None:
        """Call `server` as whom `caller` returns; None: as whom each call's metadata prove."""
        self._server = server
        self._caller = caller
        self._calls: set[DirectCall] = set()
        self._closed = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        await self.close()
        return None

    async def close(self, grace: float | None = None) -> None:
        """Close the channel; running calls have `grace` seconds to end."""
        self._closed.set()
        running = list(self._calls)
        if running and grace:
            await asyncio.wait([asyncio.ensure_future(each.code()) for each in running], timeout=grace)
        for each in running:
            each.cancel()

    def get_state(  # the signature is grpc.aio.Channel's
        self,
        try_to_connect: bool = False,  # noqa: ARG002, FBT001, FBT002
    ) -> grpc.ChannelConnectivity:
        """Return READY, or SHUTDOWN once the channel is closed."""
        return grpc.ChannelConnectivity.SHUTDOWN if self._closed.is_set() else grpc.ChannelConnectivity.READY

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the channel is closed: there is no connection that comes or goes."""
        if last_observed_state is grpc.ChannelConnectivity.READY:
            await self._closed.wait()

    async def channel_ready(self) -> None:
        """Return at once: there is no connection to wait for."""

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of one request and one answer."""
        return partial(self._call_once, method, DirectUnaryCall, *_functions(*args, **kwargs))

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of one request and a stream of answers."""
        return partial(self._call_once, method, DirectStreamCall, *_functions(*args, **kwargs))

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of a stream of requests and one answer."""
        return partial(self._call_with_stream, method, DirectUnaryCall, *_functions(*args, **kwargs))

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return a method of a stream of requests and a stream of answers."""
        return partial(self._call_with_stream, method, DirectStreamCall, *_functions(*args, **kwargs))

    def _call_once(
        self,
        method: str,
        kind: type[DirectCall],
        serialize: _Serialize,
        deserialize: _Deserialize,
        request: Any,
        *,
        timeout: float | None = None,
        metadata: _Given = None,
        **_of_connections: Any,
    ) -> DirectCall:
        call, exchange = self._open(kind, serialize, deserialize, metadata)
        if call.send(request):
            self._server.call(method, exchange, timeout)
        return call

    def _call_with_stream(
        self,
        method: str,
        kind: type[DirectCall],
        serialize: _Serialize,
        deserialize: _Deserialize,
        requests: Requests | None = None,
        *,
        timeout: float | None = None,
        metadata: _Given = None,
        **_of_connections: Any,
    ) -> DirectCall:
        call, exchange = self._open(kind, serialize, deserialize, metadata)
        self._server.call(method, exchange, timeout)
        if requests is not None:
            call.send_each(requests)
        return call

    def _open(
        self, kind: type[DirectCall], serialize: _Serialize, deserialize: _Deserialize, metadata: _Given
    ) -> tuple[DirectCall, Exchange]:
        if self._closed.is_set():
            raise grpc.aio.UsageError("Channel is closed.")
        caller = None if self._caller is None else self._caller()
        exchange = Exchange(to_metadata(metadata), caller, one_answer=kind is DirectUnaryCall)
        call = kind(exchange, serialize, deserialize)
        self._calls.add(call)
        exchange.add_done_callback(partial(self._calls.discard, call))
        return call, exchange


def _functions(
    request_serializer: _Serialize = None,
    response_deserializer: _Deserialize = None,
    _registered_method: bool | None = None,  # noqa: FBT001 - the signature is grpc.aio.Channel's
) -> tuple[_Serialize, _Deserialize]:
    return request_serializer, response_deserializer
