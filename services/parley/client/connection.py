"""A connection to one service, and calls over it that may be made again."""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self, TypeVar

import grpc

from parley.runtime.channel import channel
from parley.runtime.errors import from_rpc_error, is_transport

__all__ = ["Connection"]

_CALL_SECONDS: Final = 30.0

Answer = TypeVar("Answer")


class Connection(ABC):
    """What the clients of all services have in common; use it as `async with`."""

    def __init__(self, target: str, tenant: str = "default", *, patience: float = 30.0) -> None:
        """Calls `host:port`, or a gRPC target such as `dns:///orchestrator:7401`, which must not be empty.

        Broken connections are tried again for `patience` seconds.
        """
        self._target = target
        self._metadata = (("parley-tenant", tenant),)
        self._patience = patience
        self._channel: grpc.aio.Channel | None = None

    async def __aenter__(self) -> Self:
        self._channel = channel(self._target)
        self._opened(self._channel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    @abstractmethod
    def _opened(self, connected: grpc.aio.Channel) -> None:
        """Makes the stub of the service."""

    async def _call(self, method: Callable[..., Awaitable[Answer]], request: object) -> Answer:
        """The answer to a call that may be made again; raises ParleyError."""
        clock = asyncio.get_running_loop().time
        ends, pause = clock() + self._patience, 0.1
        while True:
            try:
                return await method(request, timeout=_CALL_SECONDS, metadata=self._metadata)
            except grpc.aio.AioRpcError as broken:
                error = from_rpc_error(broken)
            if not is_transport(error) or clock() + pause > ends:
                raise error
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 (jitter)
            pause = min(pause * 2, 5.0)
