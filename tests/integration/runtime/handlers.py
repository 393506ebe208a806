"""Handlers that the tests of calls have in common, and what waits for their ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import grpc
import pytest

from parley.v1 import orchestrator_pb2

LARGE_SERVICE = orchestrator_pb2.DESCRIPTOR.services_by_name["OrchestratorService"].full_name
"""Its CreateDebate takes the largest requests."""


Context = grpc.aio.ServicerContext[bytes, bytes]


async def echo(request: bytes, _context: Context) -> bytes:
    return request


async def wait_forever(_request: bytes, _context: Context) -> bytes:
    await asyncio.Event().wait()
    return b""


async def count_up(request: bytes, _context: Context) -> AsyncIterator[bytes]:
    for number in range(int(request)):
        yield str(number).encode()


async def join(requests: AsyncIterator[bytes], _context: Context) -> bytes:
    return b"".join([each async for each in requests])


async def echo_each(requests: AsyncIterator[bytes], _context: Context) -> AsyncIterator[bytes]:
    async for each in requests:
        yield each


def handle_both_streams(handler: Any) -> "grpc.RpcMethodHandler[bytes, bytes]":
    return grpc.stream_stream_rpc_method_handler(handler)


def make_both_streams_method(channel: grpc.aio.Channel, name: str) -> Any:
    return channel.stream_stream(f"/test.v1.TestService/{name}")


async def code_of(call: Awaitable[object]) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code()


class Watched:
    """A handler that waits, and says when it began and how it ended."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.told: list[object] = []

    async def unary(self, _request: bytes, context: Context) -> bytes:
        await self._wait(context)
        return b""

    async def stream(self, _request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"first"
        await self._wait(context)

    async def collect(self, requests: AsyncIterator[bytes], context: Context) -> bytes:
        self.began.set()
        try:
            async for _ in requests:
                pass
            await asyncio.Event().wait()  # gRPC may end the requests before it cancels the handler
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return b""

    async def _wait(self, context: Any) -> None:
        context.add_done_callback(self.told.append)
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
