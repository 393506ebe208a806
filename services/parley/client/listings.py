"""The clients of the lists: agents and routes of a gateway, and ratings."""

from collections.abc import AsyncGenerator
from typing import Final

import grpc

from parley.client.connection import Connection
from parley.v1 import gateway_pb2, gateway_pb2_grpc, ratings_pb2, ratings_pb2_grpc


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


_PAGE: Final = 200


class RatingsClient(Connection):
    """Ratings of one tenant's agents; use it as `async with`. Failures are ParleyError."""

    def _create_stub(self, connected: grpc.aio.Channel) -> None:
        self._stub = ratings_pb2_grpc.RatingsServiceStub(connected)

    def list(self, domain: str = "", *, page_size: int = _PAGE) -> AsyncGenerator[ratings_pb2.Rating, None]:
        """Yield ratings in a domain, or overall, best first, page by page as they are asked for."""
        request = ratings_pb2.ListRatingsRequest(domain=domain, page_size=page_size)
        return self._list(self._stub.ListRatings, request, lambda page: page.ratings)
