"""The methods of a server, for callers in its own process."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import grpc

from parley.runtime.direct.context import DirectContext
from parley.runtime.direct.exchange import CallStatus, Exchange
from parley.runtime.logs import get_logger
from parley.runtime.tasks import stop_task

if TYPE_CHECKING:  # subscriptable in the stubs only
    _Handler = grpc.RpcMethodHandler[Any, Any]
else:
    _Handler = grpc.RpcMethodHandler

Wrap = Callable[[str, _Handler], _Handler]
"""Returns a handler that first does what every call gets, and that reads its requests itself, as bytes."""

_STOPPED: Final = CallStatus(grpc.StatusCode.UNAVAILABLE, "the server has stopped")
_UNKNOWN_METHOD: Final = CallStatus(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
_CANCELLED: Final = CallStatus(grpc.StatusCode.CANCELLED, "the handler was cancelled")
_CLEANUP_SECONDS: Final = 2.0
"""For what a handler does at its end, before it is cancelled again."""
_logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _CallDetails(grpc.HandlerCallDetails):
    method: str
    invocation_metadata: Any = ()


class DirectServer:
    """Answers calls of `DirectChannel`s. It takes handlers as a gRPC server does: pass it to `add_…Servicer_to_server`."""

    def __init__(self, wrap: Wrap) -> None:
        """Wrap each handler once. Handlers run in the context of whoever creates the server, and not in a caller's."""
        self._wrap = wrap
        self._context = copy_context()
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._methods: dict[str, _Handler] = {}
        self._running: dict[asyncio.Task[None], Exchange] = {}
        self._is_open = True

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[Any]) -> None:
        """Add a service."""
        self._handlers += generic_rpc_handlers

    def add_registered_method_handlers(self, _service: str, _handlers: Any) -> None:
        """Do nothing: the same handlers are added as generic ones."""

    @property
    def is_open(self) -> bool:
        """Whether it takes calls."""
        return self._is_open

    def call(self, method: str, exchange: Exchange, timeout: float | None) -> None:
        """Answer a call in a task of its own."""
        if not self._is_open:
            exchange.cut(_STOPPED)
            return
        task = asyncio.get_running_loop().create_task(
            self._answer(method, exchange), context=self._context.copy()
        )
        self._running[task] = exchange
        task.add_done_callback(self._running.pop)
        exchange.start(task, timeout)

    async def stop(self, grace: float | None) -> None:
        """Take no call any more, give those that run `grace` seconds, and cut the others."""
        self._is_open = False
        if self._running and grace:
            await asyncio.wait(self._running, timeout=grace)
        running = dict(self._running)
        for task, exchange in running.items():
            if not exchange.cut(_STOPPED) and not task.cancelling():
                task.cancel()  # its call ended before, and it goes on
        if running:
            _, left = await asyncio.wait(running, timeout=_CLEANUP_SECONDS)
            await asyncio.gather(*map(stop_task, left))

    async def _answer(self, method: str, exchange: Exchange) -> None:
        """Run a handler and end its call, whatever it raises. The wrapped handler has already answered what it could."""
        try:
            handler = self._find(method)
            if handler is None:
                exchange.finish(_UNKNOWN_METHOD)
                return
            context = DirectContext(exchange, handler.response_serializer)
            if handler.response_streaming:
                await handler.stream_stream(None, context)
            else:
                context.put(await handler.stream_unary(None, context))
            exchange.finish(context.status())
        except grpc.aio.AbortError:
            pass  # it has said how the call ends
        except asyncio.CancelledError:
            exchange.cut(_CANCELLED)  # by whoever stops the loop, or else the call is over
            raise
        except Exception as error:
            if exchange.status is None:
                _logger.exception("a call failed", method=method)
            exchange.finish(CallStatus(grpc.StatusCode.UNKNOWN, f"Unexpected {type(error)}: {error}"))

    def _find(self, method: str) -> Any:
        if method not in self._methods:
            details = _CallDetails(method)
            found = (each.service(details) for each in self._handlers)
            handler = next((each for each in found if each is not None), None)
            if handler is None:
                return None
            self._methods[method] = self._wrap(method, handler)
        return self._methods[method]
