"""The gateway, memory and ratings as clients of the orchestrator read them: their own errors reach them, and one that is away is named."""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import grpc

from parley.runtime.errors import from_rpc_error, is_transport, unavailable
from parley.v1 import (
    gateway_pb2,
    gateway_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    ratings_pb2,
    ratings_pb2_grpc,
)

_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 1.0
_MAX_NAMES: Final = 256
"""Names of routes that the gateway takes in a request."""
_PASSED_ON: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""Codes of errors that say something to the client too."""
_AWAY: Final = frozenset({grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNIMPLEMENTED})
"""Codes with which a service is as good as away: it is too slow, or in a rollout still of the version before."""


class ClientGateway:
    """Which agents there are, and how the routes to their models do. All methods raise ParleyError."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Ask over `channel`."""
        self._stub = gateway_pb2_grpc.GatewayServiceStub(channel)

    async def list_agents(self) -> gateway_pb2.ListAgentsResponse:
        """Return the configured agents."""
        with _map_errors("gateway"):
            return await self._stub.ListAgents(gateway_pb2.ListAgentsRequest(), timeout=_SECONDS)

    async def list_routes(self, names: Iterable[str]) -> gateway_pb2.ListRoutesResponse:
        """Return the routes, with what is published of the prices and contexts of those named."""
        request = gateway_pb2.ListRoutesRequest(names=list(dict.fromkeys(names))[:_MAX_NAMES])
        with _map_errors("gateway"):
            return await self._stub.ListRoutes(request, timeout=_SECONDS)


class ClientMemory:
    """What is remembered of the tenant's debates. All methods raise ParleyError."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Ask over `channel`."""
        self._stub = memory_pb2_grpc.MemoryServiceStub(channel)

    async def search(self, request: memory_pb2.RecallRequest) -> AsyncIterator[memory_pb2.PastDebate]:
        """Yield past debates, best first."""
        with _map_errors("memory"):
            async for each in self._stub.Recall(request, timeout=_SECONDS):
                yield each.debate

    async def get(self, request: memory_pb2.GetRecordRequest) -> memory_pb2.GetRecordResponse:
        """Return all that is remembered of a debate."""
        with _map_errors("memory"):
            return await self._stub.GetRecord(request, timeout=_SECONDS)

    async def forget(self, request: memory_pb2.ForgetDebateRequest) -> memory_pb2.ForgetDebateResponse:
        """Forget a debate for good."""
        with _map_errors("memory"):
            return await self._stub.ForgetDebate(request, timeout=_SECONDS)

    async def list_patterns(self, request: memory_pb2.ListPatternsRequest) -> memory_pb2.ListPatternsResponse:
        """Return a page of critique patterns."""
        with _map_errors("memory"):
            return await self._stub.ListPatterns(request, timeout=_SECONDS)

    async def list_positions(
        self, request: memory_pb2.ListPositionsRequest
    ) -> memory_pb2.ListPositionsResponse:
        """Return a page of the position ledger."""
        with _map_errors("memory"):
            return await self._stub.ListPositions(request, timeout=_SECONDS)

    async def list_moments(self, request: memory_pb2.ListMomentsRequest) -> memory_pb2.ListMomentsResponse:
        """Return a page of moments."""
        with _map_errors("memory"):
            return await self._stub.ListMoments(request, timeout=_SECONDS)


class ClientRatings:
    """What is known of the tenant's agents. All methods raise ParleyError."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Ask over `channel`."""
        self._stub = ratings_pb2_grpc.RatingsServiceStub(channel)

    async def list_ratings(self, request: ratings_pb2.ListRatingsRequest) -> ratings_pb2.ListRatingsResponse:
        """Return a page of ratings."""
        with _map_errors("ratings"):
            return await self._stub.ListRatings(request, timeout=_SECONDS)

    async def list_matches(self, request: ratings_pb2.ListMatchesRequest) -> ratings_pb2.ListMatchesResponse:
        """Return a page of matches."""
        with _map_errors("ratings"):
            return await self._stub.ListMatches(request, timeout=_SECONDS)

    async def get_persona(self, request: ratings_pb2.GetPersonaRequest) -> ratings_pb2.GetPersonaResponse:
        """Return what an agent is good at."""
        with _map_errors("ratings"):
            return await self._stub.GetPersona(request, timeout=_SECONDS)

    async def list_relationships(
        self, request: ratings_pb2.ListRelationshipsRequest
    ) -> ratings_pb2.ListRelationshipsResponse:
        """Return a page of an agent's relationships."""
        with _map_errors("ratings"):
            return await self._stub.ListRelationships(request, timeout=_SECONDS)


@contextmanager
def _map_errors(service: str) -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        if is_transport(error) or error.code() in _AWAY:
            message = f"the {service} service is away; try again"
            reason = f"{service.upper()}_UNAVAILABLE"
            raise unavailable(reason, message, retry_after=_RETRY_SECONDS) from error
        if error.code() in _PASSED_ON:
            raise from_rpc_error(error) from error
        raise
