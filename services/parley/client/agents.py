"""The client of the gateway's lists."""

import grpc

from parley.client.connection import Connection
from parley.v1 import gateway_pb2, gateway_pb2_grpc

__all__ = ["GatewayClient"]


class GatewayClient(Connection):
    """Agents and routes of a gateway; use it as `async with`. Failures are ParleyError."""

    def _create_stub(self, connected: grpc.aio.Channel) -> None:
        self._stub = gateway_pb2_grpc.GatewayServiceStub(connected)

    async def list_agents(self) -> gateway_pb2.ListAgentsResponse:
        """Return the configured agents, the default team and the default judge."""
        request = gateway_pb2.ListAgentsRequest()
        return await self._call(self._stub.ListAgents, request)

    async def list_routes(self) -> gateway_pb2.ListRoutesResponse:
        """Return the routes and how they do."""
        request = gateway_pb2.ListRoutesRequest()
        return await self._call(self._stub.ListRoutes, request)
