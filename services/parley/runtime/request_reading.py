"""Reads the requests of a method, after its caller was admitted: bounded, then decoded."""

import asyncio
import ctypes
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final

import grpc
from google.protobuf.message import Message

from parley.runtime import errors
from parley.runtime.message_limits import (
    MAX_ENTRIES,
    MAX_FIELDS,
    MAX_PUBLIC_BYTES,
    find_crowded_field,
    find_crowded_field_in_bytes,
)

_PUBLIC_SLOTS: Final = 2
_PUBLIC_WAITING: Final = 64
_PUBLIC_SECONDS: Final = 5.0
"""A request of a method for all callers has some bytes, which come with the call. Waiting for others counts."""


_bytes: Final[ContextVar[int]] = ContextVar("parley_request_bytes", default=0)


def request_bytes() -> int:
    """Return the size of the request that the current call read last, which would cost a copy to measure again; 0 outside of a call."""
    return _bytes.get()


class RequestReader:
    """Reads the requests of one method.

    gRPC keeps no more of a request than the window of its stream until it is read. It unpacks none: the server refuses compression.

    Attributes:
        max_bytes: How large a request may be. It is known before one is read; the size itself only afterwards.
    """

    def __init__(self, method: str, decode: Callable[[bytes], Any] | None, max_bytes: int) -> None:
        """Decode requests with `decode`; None: they are bytes."""
        self.max_bytes = max_bytes
        self._method = method
        self._decode = decode
        self._kind = getattr(getattr(decode, "__self__", None), "DESCRIPTOR", None)

    async def read_one(self, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        """Return the request of a call that has one. Raise ParleyError if it is too large, no message, or missing."""
        given = await self._read(context)
        if given is grpc.aio.EOF:
            raise self._undecodable("there is no request")
        return self._open(given)

    async def read_each(self, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
        """Yield the requests of a stream. Raise ParleyError at one that is too large or no message."""
        while (given := await self._read(context)) is not grpc.aio.EOF:
            yield self._open(given)

    def _read(self, context: grpc.aio.ServicerContext[Any, Any]) -> Awaitable[Any]:
        return context.read()

    def _open(self, given: bytes) -> Any:
        if len(given) > self.max_bytes:
            message = f"{self._method}: the request has {len(given):,} bytes, more than the {self.max_bytes:,} that this method takes; send less"
            raise errors.invalid_argument((), reason="REQUEST_TOO_LARGE", message=message)
        _bytes.set(len(given))
        if self._decode is None:
            return given
        if self._kind is not None and (crowded := find_crowded_field_in_bytes(given, self._kind)) is not None:
            raise _create_field_error(crowded, f"brings the message above {MAX_FIELDS} fields")
        try:
            request = self._decode(given)
        except Exception as error:  # noqa: BLE001 - whatever it is, the bytes are no message
            raise self._undecodable(f"the bytes are no request of this method ({error})") from None
        if isinstance(request, Message) and len(given) > MAX_ENTRIES:
            crowded = find_crowded_field(request)
            if crowded is not None:
                raise _create_field_error(
                    crowded, f"brings the message above {MAX_ENTRIES} entries of all its lists"
                )
        return request

    def _undecodable(self, reason: str) -> errors.ParleyError:
        message = f"{self._method}: {reason}; send its message"
        return errors.invalid_argument((), reason="UNDECODABLE", message=message)


class PublicSlots:
    """Bounds how many requests of callers without credentials are read at the same time: gRPC takes up to 16 MiB of each."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_PUBLIC_SLOTS)
        self._waiting = 0

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Read a request while the block runs. Raise RESOURCE_EXHAUSTED if too many wait, or if it takes longer than some seconds."""
        if self._waiting >= _PUBLIC_WAITING:
            raise _create_busy_error()
        self._waiting += 1
        try:
            async with asyncio.timeout(_PUBLIC_SECONDS), self._slots:
                yield
        except TimeoutError:
            raise _create_busy_error() from None
        finally:
            self._waiting -= 1


class PublicRequestReader(RequestReader):
    """Reads the requests of a method that all callers may use. Its methods share their slots."""

    def __init__(self, method: str, decode: Callable[[bytes], Any] | None, slots: PublicSlots) -> None:
        super().__init__(method, decode, MAX_PUBLIC_BYTES)
        self._slots = slots

    async def _read(self, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        async with self._slots.take():
            given = await super()._read(context)
        if given is not grpc.aio.EOF and len(given) > self.max_bytes:
            _return_free_memory()
        return given


def _return_free_memory() -> None:
    """Give freed memory back to the system. gRPC's threads free a large request in small pieces, which the C library would keep for each."""
    with suppress(AttributeError):  # glibc alone has it
        ctypes.CDLL(None).malloc_trim(0)


def _create_busy_error() -> errors.ParleyError:
    message = "too many requests without credentials arrive at the same time; try again"
    return errors.resource_exhausted("PUBLIC_METHODS_BUSY", message, retry_after=1.0)


def _create_field_error(field: str, problem: str) -> errors.ParleyError:
    return errors.invalid_argument([errors.FieldViolation(field, problem)])
