"""A call as its caller sees it."""

import asyncio
from collections.abc import AsyncIterable, Callable, Generator, Iterable
from functools import partial
from typing import Any, Self

import grpc

from parley.runtime.direct.exchange import CANCELLED, CallStatus, Exchange, Metadata, describe_excess
from parley.runtime.logs import get_logger
from parley.runtime.message_limits import MAX_MESSAGE_BYTES

_logger = get_logger(__name__)

Requests = AsyncIterable[Any] | Iterable[Any]


class DirectCall:
    """What `grpc.aio` returns for a call, whatever its shape."""

    def __init__(
        self,
        exchange: Exchange,
        serialize: Callable[[Any], bytes] | None,
        deserialize: Callable[[bytes], Any] | None,
    ) -> None:
        """Follow `exchange`. None for one of the functions: messages are bytes."""
        self._exchange = exchange
        self._serialize = serialize
        self._deserialize = deserialize
        self._is_cancelled_here = False
        self._has_written_all = False

    def send(self, request: Any) -> bool:
        """Send the only request; return False, and end the call, if it is too large."""
        message = self._to_bytes(request)
        if message is None:
            return False
        self._exchange.requests.put(message)
        self._exchange.requests.close()
        return True

    def send_each(self, requests: Requests) -> None:
        """Send requests as they come, in a task that ends with the call."""
        feeding = asyncio.get_running_loop().create_task(self._feed(requests))
        self._exchange.add_done_callback(feeding.cancel)

    async def write(self, request: Any) -> None:
        """Send one message of a request stream; wait while the handler is behind."""
        if self.done():
            raise asyncio.InvalidStateError("RPC already finished.")
        if self._has_written_all:
            raise asyncio.InvalidStateError('RPC is half closed after calling "done_writing".')
        message = self._to_bytes(request)
        if message is not None:
            await self._exchange.requests.write(message)
        if self.done():
            await self.raise_for_status()

    async def done_writing(self) -> None:
        """Say that no more messages will be sent."""
        self._has_written_all = True
        self._exchange.requests.close()

    async def initial_metadata(self) -> grpc.aio.Metadata:
        """Return what the handler sent first."""
        await self._exchange.wait_until_reached()
        return _to_grpc(self._exchange.initial or ())

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        """Wait for the end and return what the handler sent last."""
        return _to_grpc((await self._exchange.wait_until_ended()).trailing)

    async def code(self) -> grpc.StatusCode:
        """Wait for the end and return how the call ended."""
        return (await self._exchange.wait_until_ended()).code

    async def details(self) -> str:
        """Wait for the end and return what the handler said."""
        return (await self._exchange.wait_until_ended()).details

    async def debug_error_string(self) -> str:
        """Wait for the end and return what the handler said."""
        return await self.details()

    def cancel(self) -> bool:
        """End the call, here and at the handler; return False if it was over."""
        self._is_cancelled_here = self._exchange.cut(CANCELLED) or self._is_cancelled_here
        return self._is_cancelled_here

    def cancelled(self) -> bool:
        """Return whether the call was cancelled."""
        status = self._exchange.status
        return status is not None and status.code is grpc.StatusCode.CANCELLED

    def done(self) -> bool:
        """Return whether the call is over."""
        return self._exchange.status is not None

    def time_remaining(self) -> float | None:
        """Return the seconds until the call's deadline; None without one."""
        return self._exchange.time_remaining()

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call back when the call is over."""
        self._exchange.add_done_callback(partial(callback, self))

    async def raise_for_status(self) -> None:
        """Wait for the end; raise AioRpcError unless it is OK, or CancelledError if the caller cancelled."""
        self._raise_for(await self._exchange.wait_until_ended())

    def _raise_for(self, status: CallStatus) -> None:
        if self._is_cancelled_here:
            raise asyncio.CancelledError
        if status.code is not grpc.StatusCode.OK:
            initial, trailing = _to_grpc(self._exchange.initial or ()), _to_grpc(status.trailing)
            raise grpc.aio.AioRpcError(status.code, initial, trailing, status.details, status.details)

    def _to_bytes(self, request: Any) -> bytes | None:
        """Return a request's bytes; None, and the call has ended, if they are too many."""
        message: bytes = request if self._serialize is None else self._serialize(request)
        if len(message) <= MAX_MESSAGE_BYTES:
            return message
        self._exchange.cut(describe_excess(message))
        return None

    async def _feed(self, requests: Requests) -> None:
        try:
            if isinstance(requests, AsyncIterable):
                async for each in requests:
                    await self.write(each)
            else:
                for each in requests:
                    await self.write(each)
            await self.done_writing()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return  # the call has ended, and says how
        except asyncio.CancelledError:
            self.cancel()
            raise
        except Exception:
            _logger.debug("the requests of a call failed", exc_info=True)
            self.cancel()


class DirectUnaryCall(DirectCall):
    """A call with one answer."""

    def __await__(self) -> Generator[Any, None, Any]:
        exchange = self._exchange
        try:
            while exchange.status is None:
                yield from exchange.wait()
        except asyncio.CancelledError:
            self.cancel()
            raise
        self._raise_for(exchange.status)
        return self._answer()

    async def wait_for_connection(self) -> None:
        """Wait for the answer. Raise AioRpcError if there is none."""
        await self.raise_for_status()

    def _answer(self) -> Any:
        """Return the answer, read at the first time."""
        if (message := self._exchange.responses.take()) is not None:
            self._read = message if self._deserialize is None else self._deserialize(message)
        return self._read


class DirectStreamCall(DirectCall):
    """A call with a stream of answers."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self.read()
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        return message

    async def read(self) -> Any:
        """Return the next answer, or `grpc.aio.EOF`. Raise AioRpcError if the call failed."""
        try:
            message = await self._exchange.read_response()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if message is not None:
            return message if self._deserialize is None else self._deserialize(message)
        self._raise_for(self._exchange.status or await self._exchange.wait_until_ended())
        return grpc.aio.EOF

    async def wait_for_connection(self) -> None:
        """Wait until the handler has sent something. Raise AioRpcError if the call failed."""
        await self._exchange.wait_until_reached()
        if self.done():
            await self.raise_for_status()


def _to_grpc(metadata: Metadata) -> grpc.aio.Metadata:
    return grpc.aio.Metadata.from_tuple(metadata)
