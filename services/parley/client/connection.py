"""A connection to one service, and calls over it that may be made again."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeVar

import grpc

from parley.client.access import channel_settings
from parley.runtime.backoff import Backoff, retry
from parley.runtime.channel import channel
from parley.runtime.clock import SystemClock
from parley.runtime.errors import from_rpc_error, is_transport

__all__ = ["RECONNECTION", "Connection"]

RECONNECTION: Final = Backoff(first=0.1, maximum=5.0, jitter=0.5)
"""Pauses before a connection that broke is used again."""
_CALL_SECONDS: Final = 30.0

Answer = TypeVar("Answer")


class Connection(ABC):
    """What the clients of all services have in common; use it as `async with`."""

    def __init__(
        self,
        target: str,
        tenant: str = "default",
        *,
        patience: float = 30.0,
        token: str | None = None,
        ca: str | None = None,
    ) -> None:
        """Call `host:port`, or a gRPC target such as `dns:///orchestrator:7401`, which must not be empty.

        Broken connections are tried again for `patience` seconds. `token` (by default PARLEY_TOKEN) says who calls, to a
        server that `ca` vouches for: the file of an authority, or `system` (by default PARLEY_CA; see `access`). A server that
        asks takes the tenant from them; `tenant` is for one that does not.
        """
        self._target = target
        self._access = partial(channel_settings, target, tenant, token, ca)
        self._metadata = (("parley-tenant", tenant),)
        self._patience = patience
        self._channel: grpc.aio.Channel | None = None

    async def __aenter__(self) -> Self:
        """Open the connection. Raise ConfigurationError where what says who calls cannot be used, or would be sent in the clear."""
        self._channel = channel(self._target, self._access())
        self._create_stub(self._channel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    @abstractmethod
    def _create_stub(self, connected: grpc.aio.Channel) -> None:
        """Make the stub of the service."""

    async def _call(self, method: Callable[..., Awaitable[Answer]], request: object) -> Answer:
        """Return the answer to a call that may be made again. Raise ParleyError."""

        async def attempt() -> Answer:
            try:
                return await method(request, timeout=_CALL_SECONDS, metadata=self._metadata)
            except grpc.aio.AioRpcError as broken:
                raise from_rpc_error(broken) from None

        return await retry(
            attempt, on=is_transport, backoff=RECONNECTION, clock=SystemClock(), seconds=self._patience
        )
