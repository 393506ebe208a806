"""A connection to one service, and calls over it that are retried."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import grpc

from parley.client.access import channel_settings
from parley.runtime.backoff import retry
from parley.runtime.channel import channel
from parley.runtime.clock import SystemClock
from parley.runtime.errors import from_rpc_error, is_transport
from parley.runtime.watching import RECONNECTION
from parley.v1.orchestrator_pb2_grpc import OrchestratorServiceStub

_CALL_SECONDS: Final = 30.0

Answer = TypeVar("Answer")
Item = TypeVar("Item")


class Connection(ABC):
    """The common part of the clients of all services; use it as `async with`."""

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

        Broken connections are retried for `patience` seconds. `token` (by default PARLEY_TOKEN) identifies the caller to a
        server whose certificate `ca` signed: the file of an authority, or `system` (by default PARLEY_CA; see `access`). A server that
        checks tokens takes the tenant from them; `tenant` is for one that does not.
        """
        self._target = target
        self._access = partial(channel_settings, target, tenant, token, ca)
        self._metadata: tuple[tuple[str, str], ...] = (("parley-tenant", tenant),)
        self._patience = patience
        self._channel: grpc.aio.Channel | None = None

    @classmethod
    def over(
        cls, connected: grpc.aio.Channel, metadata: Iterable[tuple[str, str]], *, patience: float = 30.0
    ) -> Self:
        """Return a client of a channel that is open already, and stays open; `metadata`, such as a caller's credentials, goes with each call."""
        client = cls("", patience=patience)
        client._metadata = tuple(metadata)
        client._create_stub(connected)
        return client

    async def __aenter__(self) -> Self:
        """Open the connection. Raise ConfigurationError if the credentials cannot be used, or would be sent without TLS."""
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
        """Create the stub of the service."""

    async def _call(self, method: Callable[..., Awaitable[Answer]], request: object) -> Answer:
        """Return the response to a call that may be retried. Raise ParleyError."""

        async def attempt() -> Answer:
            try:
                return await method(request, timeout=_CALL_SECONDS, metadata=self._metadata)
            except grpc.aio.AioRpcError as broken:
                raise from_rpc_error(broken) from None

        return await retry(
            attempt, on=is_transport, backoff=RECONNECTION, clock=SystemClock(), seconds=self._patience
        )

    async def _list(
        self,
        method: Callable[..., Awaitable[Answer]],
        request: Any,
        items: Callable[[Answer], Iterable[Item]],
    ) -> AsyncGenerator[Item, None]:
        """Yield the items of all pages; each page is fetched when it is needed. Raise ParleyError."""
        while True:
            page: Any = await self._call(method, request)
            for each in items(page):
                yield each
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token


class OrchestratorConnection(Connection):
    """A connection to an orchestrator: the common part of what makes up its client."""

    def _create_stub(self, connected: grpc.aio.Channel) -> None:
        self._stub = OrchestratorServiceStub(connected)


def create_request_id() -> str:
    """Return an id for a request that can be sent again."""
    return uuid.uuid4().hex
