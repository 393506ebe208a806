"""Streams that break, and are opened again where they broke."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Final, Protocol, TypeVar

import grpc

from parley.client.connection import RECONNECTION
from parley.runtime.errors import from_rpc_error, is_transport, unavailable

__all__ = ["Reader", "Stream", "read_with_reconnects"]

_RETRIED: Final = frozenset({"STORE_UNAVAILABLE", "SLOW_READER"})

Response = TypeVar("Response")
Response_co = TypeVar("Response_co", covariant=True)
Response_contra = TypeVar("Response_contra", contravariant=True)
Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class Stream(Protocol[Response_co]):
    """A stream of messages that can be given up."""

    def __aiter__(self) -> AsyncIterator[Response_co]: ...

    def cancel(self) -> bool:
        """Give it up."""
        ...


class Reader(Protocol[Response_contra, Item_co]):
    """Reads messages, and knows the sequence of the last event among them."""

    last: int

    def read(self, response: Response_contra) -> Iterable[Item_co]:
        """Return what is new in a message. Raise ParleyError where an event is missing."""
        ...


async def read_with_reconnects(
    open_after: Callable[[int], Stream[Response]],
    reader: Reader[Response, Item],
    patience: float,
    silence: float,
) -> AsyncGenerator[Item, None]:
    """Yield what the reader finds in the streams that `open_after(sequence)` opens.

    A stream that breaks, or says nothing for `silence` seconds, is opened again. Raise ParleyError once that brought no
    message for `patience` seconds, or when the service refuses.
    """
    pauses = _ReconnectPauses(patience)
    while True:
        try:
            async with aclosing(_read_until_silent(open_after(reader.last), silence)) as stream:
                async for response in stream:
                    pauses.reset()
                    for item in reader.read(response):
                        yield item
        except grpc.aio.AioRpcError as broken:
            error = from_rpc_error(broken)
            if not (is_transport(error) or error.reason in _RETRIED):
                raise error from None
        except TimeoutError:
            error = unavailable("", "the stream fell silent")
        else:
            return
        if not await pauses.pause():
            raise error


class _ReconnectPauses:
    """Pauses between streams, longer each time, until patience ends."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._clock = asyncio.get_running_loop().time
        self.reset()

    def reset(self) -> None:
        self._pauses = RECONNECTION.pauses()
        self._since: float | None = None

    async def pause(self) -> bool:
        """Wait; once patience has ended, return False at once."""
        now = self._clock()
        if self._since is None:
            self._since = now
        if now - self._since >= self._patience:
            return False
        await asyncio.sleep(next(self._pauses))
        return True


async def _read_until_silent(stream: Stream[Response], seconds: float) -> AsyncGenerator[Response, None]:
    messages = aiter(stream)
    try:
        while True:
            async with asyncio.timeout(seconds):
                response = await anext(messages, None)
            if response is None:
                return
            yield response
    finally:
        stream.cancel()
