"""The client of the gateway's lists."""

from types import TracebackType
from typing import Self

import grpc

from parley.client.debates import repeated
from parley.runtime.channel import channel
from parley.v1 import gateway_pb2, gateway_pb2_grpc

__all__ = ["GatewayClient"]


class GatewayClient:
    """Agents and routes of a gateway; use it as `async with`. Failures are ParleyError."""

    def __init__(self, target: str, tenant: str = "default", *, patience: float = 30.0) -> None:
        """Calls `host:port`, or a gRPC target; broken connections are tried again for `patience` seconds."""
        self._target = target
        self._metadata = (("parley-tenant", tenant),)
        self._patience = patience
        self._channel: grpc.aio.Channel | None = None

    async def __aenter__(self) -> Self:
        self._channel = channel(self._target)
        self._stub = gateway_pb2_grpc.GatewayServiceStub(self._channel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def agents(self) -> gateway_pb2.ListAgentsResponse:
        """The configured agents, the default team and the default judge."""
        request = gateway_pb2.ListAgentsRequest()
        return await repeated(self._stub.ListAgents, request, self._metadata, self._patience)

    async def routes(self) -> gateway_pb2.ListRoutesResponse:
        """The routes and how they do."""
        request = gateway_pb2.ListRoutesRequest()
        return await repeated(self._stub.ListRoutes, request, self._metadata, self._patience)
